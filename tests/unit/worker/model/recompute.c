/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers that run again on the way back (graph_recompute.c): the bits of what is kept, in less memory.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/worker/model/bench.h"

#define U FIELD_UNSET

static const struct model_spec gpt = {.preset = PRESET_GPT_BYTES, .width = 24, .depth = 3, .heads = 3, .context = 11};
static const struct model_spec tied = {
    .preset = PRESET_GPT2_124M, .width = 24, .depth = 2, .heads = 3, .context = 9, .vocabulary = 83, .dropout = 0.25};
static const struct model_spec resnet = {
    .preset = PRESET_RESNET20, .width = 4, .depth = 2, .input_shape = {8, 8, 2}, .input_rank = 3, .classes = 5};
static const struct model_spec lenet = {.preset = PRESET_LENET, .width = U, .depth = U};

static struct bench open_bench(const struct model_spec *model, enum precision precision, int64_t rows, bool recompute)
{
    return bench_open_graph(
        (struct graph_options){
            .model = model, .max_examples = 5, .precision = precision, .logit_rows = rows, .recompute = recompute},
        2);
}

/* Its values come to lie where the next pass has its own. */
static void evaluate(struct bench *b)
{
    struct graph_pass pass = bench_pass(b);
    cr_assert_eq(graph_evaluate(b->graph, b->stream, &pass, NULL), 0);
    cr_assert_eq(device_stream_synchronise(b->stream, NULL), 0);
}

static void expect_same_pass(const struct bench *kept, const struct bench *again, int pass)
{
    size_t bytes = (size_t)graph_layout(kept->graph)->elements * sizeof(float);
    cr_expect_eq(memcmp(kept->gradients, again->gradients, bytes), 0, "pass %d", pass);
    cr_expect_eq(kept->sums.loss, again->sums.loss);
}

static void expect_the_bits_of_what_is_kept(const struct model_spec *model, enum precision precision, int64_t rows)
{
    struct bench kept = open_bench(model, precision, rows, false), again = open_bench(model, precision, rows, true);
    for (int pass = 0; pass < 3; pass++) { /* the last with fewer examples */
        kept.examples = again.examples = pass < 2 ? 5 : 3;
        bench_backward(&kept, pass == 1);
        bench_backward(&again, pass == 1);
        expect_same_pass(&kept, &again, pass);
        evaluate(&again);
    }
    bench_close(&kept);
    bench_close(&again);
}

static void expect_less_memory(const struct model_spec *model, enum precision precision, int64_t rows)
{
    struct bench kept = open_bench(model, precision, rows, false), again = open_bench(model, precision, rows, true);
    struct memory_plan kept_plan, again_plan;
    graph_memory_plan(kept.graph, 0, &kept_plan);
    graph_memory_plan(again.graph, 0, &again_plan);
    cr_expect_lt(again_plan.bytes[MEMORY_ACTIVATIONS], kept_plan.bytes[MEMORY_ACTIVATIONS]);
    bench_close(&kept);
    bench_close(&again);
}

Test(recompute, blocks_that_run_again_have_the_bits_of_what_is_kept)
{
    static const enum precision precisions[] = {PRECISION_FLOAT32, PRECISION_BFLOAT16};
    static const struct {
        const struct model_spec *model;
        int64_t rows;
    } cases[] = {{&gpt, 0}, {&tied, 0}, {&tied, 7}, {&resnet, 0}};
    for (int p = 0; p < 2; p++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            expect_the_bits_of_what_is_kept(cases[i].model, precisions[p], cases[i].rows);
            expect_less_memory(cases[i].model, precisions[p], cases[i].rows);
        }
}

/* Between its sums, layers are recomputed that do not need their own inputs to run backward, so the sum before them must still be in
 * memory. */
static struct layer_spec forgetful_layers[] = {
    {.name = "c", .type = LAYER_CONV2D, .filters = 4, .kernel = 3, .padding = 1, .stride = U, .units = U, .size = U},
    {.name = "d", .type = LAYER_CONV2D, .filters = 4, .kernel = 3, .padding = 1, .stride = U, .units = U, .size = U},
    {.name = "a", .type = LAYER_ADD, .inputs = {"c", "d"}, .input_count = 2, .units = U, .size = U},
    {.name = "p", .type = LAYER_AVERAGE_POOL, .units = U, .size = 2, .stride = U},
    {.name = "e", .type = LAYER_CONV2D, .filters = 4, .kernel = 3, .padding = 1, .stride = U, .units = U, .size = U},
    {.name = "b", .type = LAYER_ADD, .inputs = {"e", "p"}, .input_count = 2, .units = U, .size = U},
    {.name = "o", .type = LAYER_DROPOUT, .rate = 0.25, .units = U, .size = U},
    {.name = "f", .type = LAYER_CONV2D, .filters = 4, .kernel = 3, .padding = 1, .stride = U, .units = U, .size = U},
    {.name = "s", .type = LAYER_ADD, .inputs = {"f", "o"}, .input_count = 2, .units = U, .size = U},
    {.name = "g", .type = LAYER_GLOBAL_AVERAGE_POOL, .units = U, .size = U},
    {.name = "y", .type = LAYER_DENSE, .units = 3, .bias = true, .size = U},
};
static const struct model_spec forgetful = {.input_shape = {8, 8, 2},
                                            .input_rank = 3,
                                            .layers = forgetful_layers,
                                            .layer_count = 11,
                                            .loss = LOSS_SOFTMAX_CROSS_ENTROPY};

Test(recompute, what_runs_again_finds_the_sum_before_it)
{
    expect_the_bits_of_what_is_kept(&forgetful, PRECISION_FLOAT32, 0);
    expect_the_bits_of_what_is_kept(&forgetful, PRECISION_BFLOAT16, 0);
}

static int open_graph(const struct model_spec *model, int64_t examples, bool recompute, struct graph **ret_graph,
                      struct error *error)
{
    static struct device *device;
    if (!device)
        cr_assert_eq(device_open(&(struct device_options){.type = DEVICE_TYPE_CPU, .threads = 1}, &device, NULL), 0);
    const struct graph_options options = {
        .device = device, .model = model, .max_examples = examples, .recompute = recompute, .plan_only = true};
    return graph_new(&options, ret_graph, error);
}

static double activations(const struct model_spec *model, int64_t examples, bool recompute)
{
    struct graph *graph;
    struct memory_plan plan;
    cr_assert_eq(open_graph(model, examples, recompute, &graph, NULL), 0);
    graph_memory_plan(graph, 0, &plan);
    graph_free(graph);
    return (double)plan.bytes[MEMORY_ACTIVATIONS] / (1 << 20);
}

/* 24 sums of 8 x 1024 x 768 floats, 24 MiB each, are kept of the blocks, where all was 21 such a block. */
Test(recompute, gpt2_keeps_its_residual_sums)
{
    const struct model_spec gpt2 = {.preset = PRESET_GPT2_124M, .width = U, .depth = U, .heads = U, .context = U};
    double kept = activations(&gpt2, 8, false), again = activations(&gpt2, 8, true);
    cr_expect_lt(again, kept / 2, "%.1f MiB, and %.1f MiB", again, kept);
    cr_expect_gt(again, 24 * 24, "%.1f MiB, and %.1f MiB", again, kept);
}

static void expect_refusal(const struct model_spec *model, const char *words)
{
    struct error error = ERROR_INIT;
    struct graph *graph;
    cr_assert_eq(open_graph(model, 2, true, &graph, &error), -1);
    cr_expect_eq(error.kind, ERROR_INVALID);
    cr_expect_not_null(strstr(error.message, words), "%s", error.message);
}

static struct layer_spec shared_layers[] = {
    {.name = "c", .type = LAYER_CONV2D, .filters = 4, .kernel = 3, .padding = 1, .stride = U, .units = U, .size = U},
    {.name = "n", .type = LAYER_BATCH_NORM, .units = U, .size = U, .statistics = STATISTICS_GLOBAL},
    {.name = "a", .type = LAYER_ADD, .inputs = {"n", "c"}, .input_count = 2, .units = U, .size = U},
    {.name = "g", .type = LAYER_GLOBAL_AVERAGE_POOL, .units = U, .size = U},
    {.name = "d", .type = LAYER_DENSE, .units = 3, .bias = true, .size = U},
};
static const struct model_spec shared = {.input_shape = {7, 7, 2},
                                         .input_rank = 3,
                                         .layers = shared_layers,
                                         .layer_count = 5,
                                         .loss = LOSS_SOFTMAX_CROSS_ENTROPY};

Test(recompute, models_that_gain_nothing_or_cannot_are_refused)
{
    expect_refusal(&lenet, "strategy.recompute: the model has no residual sums");
    expect_refusal(&shared, "strategy.recompute: the layers that share statistics: Global");
}
