/* SPDX-License-Identifier: Apache-2.0
 *
 * The last layer and the loss by parts (graph_head.c) against all logits at once.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/worker/model/bench.h"

#define U FIELD_UNSET

static const struct model_spec tied = {
    .preset = PRESET_GPT2_124M, .width = 24, .depth = 1, .heads = 3, .context = 9, .vocabulary = 83};
static const struct model_spec untied = {
    .preset = PRESET_GPT_BYTES, .width = 24, .depth = 1, .heads = 3, .context = 11};
static struct layer_spec classifier_layers[] = {
    {.name = "a", .type = LAYER_DENSE, .units = 12, .heads = U, .size = U, .bias = true},
    {.name = "r", .type = LAYER_RELU, .units = U, .heads = U, .size = U},
    {.name = "b", .type = LAYER_DENSE, .units = 9, .heads = U, .size = U, .bias = true},
};
static const struct model_spec classifier = {.input_shape = {7},
                                             .input_rank = 1,
                                             .layers = classifier_layers,
                                             .layer_count = 3,
                                             .loss = LOSS_SOFTMAX_CROSS_ENTROPY};
static const struct model_spec *const models[] = {&tied, &untied, &classifier};
enum { MODELS = 3 };

static size_t elements_of(const struct bench *b)
{
    return (size_t)graph_layout(b->graph)->elements;
}

static double distance(const struct bench *a, const struct bench *b)
{
    double difference = 0, norm = 0;
    for (size_t i = 0; i < elements_of(a); i++) {
        double one = (double)a->gradients[i], other = (double)b->gradients[i];
        difference += (one - other) * (one - other);
        norm += other * other;
    }
    return sqrt(difference / norm);
}

static bool same_gradients(const struct bench *a, const struct bench *b)
{
    return memcmp(a->gradients, b->gradients, elements_of(a) * sizeof(float)) == 0;
}

static void expect_the_gradients_of_all(const struct model_spec *model, enum precision precision, int64_t rows)
{
    struct bench parts = bench_open_rows(model, 5, 2, precision, rows);
    struct bench whole = bench_open_rows(model, 5, 2, precision, LOGIT_ROWS_ALL);
    bench_backward(&parts, false);
    bench_backward(&whole, false);
    cr_expect_lt(distance(&parts, &whole), 1e-6, "%lld rows: %g", (long long)rows, distance(&parts, &whole));
    cr_expect_eq(parts.sums.loss, whole.sums.loss);
    cr_expect_eq(parts.sums.correct, whole.sums.correct);
    cr_expect_eq(parts.sums.count, whole.sums.count);
    bench_close(&parts);
    bench_close(&whole);
}

Test(head, parts_give_the_gradients_and_the_loss_of_all_logits_at_once)
{
    for (int m = 0; m < MODELS; m++)
        for (int64_t rows = 1; rows < 5; rows += 3) {
            expect_the_gradients_of_all(models[m], PRECISION_FLOAT32, rows);
            expect_the_gradients_of_all(models[m], PRECISION_BFLOAT16, rows);
        }
}

Test(head, a_pass_of_one_part_has_the_bits_of_all_logits_at_once)
{
    for (int m = 0; m < MODELS; m++) {
        struct bench parts = bench_open_rows(models[m], 5, 2, PRECISION_FLOAT32, m < 2 ? 40 : 4);
        struct bench whole = bench_open_rows(models[m], 5, 2, PRECISION_FLOAT32, LOGIT_ROWS_ALL);
        parts.examples = whole.examples = 3;
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            bench_backward(&parts, accumulate > 0);
            bench_backward(&whole, accumulate > 0);
            cr_expect(same_gradients(&parts, &whole));
        }
        bench_close(&parts);
        bench_close(&whole);
    }
}

Test(head, neither_threads_nor_a_larger_plan_change_a_bit)
{
    for (int m = 0; m < MODELS; m++) {
        struct bench one = bench_open_rows(models[m], 5, 1, PRECISION_FLOAT32, 3);
        struct bench many = bench_open_rows(models[m], 9, 3, PRECISION_FLOAT32, 3);
        many.examples = 5;
        bench_backward(&one, false);
        bench_backward(&many, false);
        cr_expect(same_gradients(&one, &many));
        bench_close(&one);
        bench_close(&many);
    }
}

Test(head, accumulating_adds_the_finished_gradients_of_a_pass)
{
    for (int m = 0; m < MODELS; m++) {
        struct bench b = bench_open_rows(models[m], 5, 2, PRECISION_FLOAT32, 2);
        bench_backward(&b, false);
        float *alone = malloc(elements_of(&b) * sizeof *alone);
        memcpy(alone, b.gradients, elements_of(&b) * sizeof *alone);
        bench_backward(&b, true);
        for (size_t i = 0; i < elements_of(&b); i++)
            cr_assert_eq(b.gradients[i], alone[i] + alone[i]);
        free(alone);
        bench_close(&b);
    }
}

Test(head, no_examples_give_zeros)
{
    for (int m = 0; m < MODELS; m++) {
        struct bench b = bench_open_rows(models[m], 5, 2, PRECISION_FLOAT32, 2);
        memset(b.gradients, 0x41, elements_of(&b) * sizeof(float));
        b.examples = 0;
        bench_backward(&b, false);
        for (size_t i = 0; i < elements_of(&b); i++)
            cr_assert_eq(b.gradients[i], 0.0f);
        cr_expect_eq(b.sums.count, 0);
        bench_close(&b);
    }
}

static double evaluate(struct bench *b)
{
    struct error error = ERROR_INIT;
    struct graph_pass pass = bench_pass(b);
    cr_assert_eq(graph_evaluate(b->graph, b->stream, &pass, &error), 0, "%s", error.message);
    cr_assert_eq(device_stream_synchronise(b->stream, &error), 0, "%s", error.message);
    return b->sums.loss;
}

static struct graph *plan(struct bench *b, const struct model_spec *model, bool keeps_outputs, int64_t rows)
{
    struct graph *graph;
    const struct graph_options options = {.device = b->device,
                                          .model = model,
                                          .max_examples = 5,
                                          .evaluation_only = true,
                                          .keeps_outputs = keeps_outputs,
                                          .logit_rows = rows};
    cr_assert_eq(graph_new(&options, &graph, NULL), 0);
    return graph;
}

Test(head, evaluations_give_the_same_loss_and_keep_outputs_only_on_request)
{
    for (int m = 0; m < MODELS; m++) {
        struct bench b = bench_open_rows(models[m], 5, 2, PRECISION_FLOAT32, LOGIT_ROWS_ALL);
        double expected = evaluate(&b);
        for (int64_t rows = 1; rows < 4; rows += 2)
            for (int keeps = 0; keeps < 2; keeps++) {
                graph_free(b.graph);
                b.graph = plan(&b, models[m], keeps > 0, rows);
                cr_expect_eq(evaluate(&b), expected);
                cr_expect_eq(graph_outputs(b.graph) != NULL, keeps > 0);
            }
        bench_close(&b);
        b = bench_open_rows(models[m], 5, 2, PRECISION_FLOAT32, 2);
        bench_backward(&b, false);
        cr_expect_eq(evaluate(&b), expected, "a training plan's");
        bench_close(&b);
    }
}

Test(head, a_bad_target_of_a_later_part_fails_the_stream)
{
    struct error error = ERROR_INIT;
    struct bench b = bench_open_rows(&classifier, 5, 2, PRECISION_FLOAT32, 2);
    ((int32_t *)b.targets)[4] = 9;
    struct graph_pass pass = bench_pass(&b);
    cr_assert_eq(graph_forward_backward(b.graph, b.stream, &pass, &error), 0);
    cr_expect_eq(device_stream_synchronise(b.stream, &error), -1);
    cr_expect_not_null(strstr(error.message, "target 9 is outside 0..8"), "%s", error.message);
    bench_close(&b);
}

/* ---------------------------------------------------------------- memory */

static double activations(const struct model_spec *model, int64_t examples, int64_t rows)
{
    struct device *device;
    struct graph *graph;
    struct memory_plan plan;
    cr_assert_eq(device_open(&(struct device_options){.type = DEVICE_TYPE_CPU, .threads = 1}, &device, NULL), 0);
    const struct graph_options options = {
        .device = device, .model = model, .max_examples = examples, .plan_only = true, .logit_rows = rows};
    cr_assert_eq(graph_new(&options, &graph, NULL), 0);
    graph_memory_plan(graph, 0, &plan);
    graph_free(graph);
    device_close(device);
    return (double)plan.bytes[MEMORY_ACTIVATIONS] / (1 << 20);
}

/* 8,192 rows of 50,257 logits are 1,571 MiB in float32, and their gradient is as much; 2,048 rows are 393 MiB. */
Test(head, gpt2_keeps_the_logits_of_some_rows)
{
    const struct model_spec gpt2 = {.preset = PRESET_GPT2_124M, .width = U, .depth = U, .heads = U, .context = U};
    double whole = activations(&gpt2, 8, LOGIT_ROWS_ALL), parts = activations(&gpt2, 8, 0);
    cr_expect_gt(whole - parts, 2400, "%.1f MiB, and %.1f MiB", whole, parts);
    whole = activations(&gpt2, 2, LOGIT_ROWS_ALL), parts = activations(&gpt2, 2, 0);
    cr_expect_lt(parts, whole - 200, "one part, in place: %.1f MiB, and %.1f MiB", whole, parts);
}

Test(head, narrow_outputs_are_all_there_at_once)
{
    const struct model_spec gpt = {.preset = PRESET_GPT_BYTES, .width = U, .depth = U, .heads = U, .context = U};
    cr_expect_eq(activations(&gpt, 64, 0), activations(&gpt, 64, LOGIT_ROWS_ALL));
}
