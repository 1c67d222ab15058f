/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of whole small models, every kind of layer among them, against
 * finite differences of the loss; and what must hold for their bits.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/philox.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/worker/model/bench.h"
#include "worker/device/backend.h"

#define U FIELD_UNSET

static struct bench open_rows(const struct model_spec *model, int64_t examples, int threads, int64_t logit_rows)
{
    struct bench b = bench_open_rows(model, examples, threads, PRECISION_FLOAT32, logit_rows);
    for (int64_t i = 0; i < graph_layout(b.graph)->elements; i++) /* so that zeros and ones do not hide mistakes */
        b.parameters[i] += 0.1f * ((float)(philox(1, (uint64_t)i, 0).word[0] >> 8) / 16777216.0f - 0.5f);
    return b;
}

static struct bench open_bench(const struct model_spec *model, int64_t examples, int threads)
{
    return open_rows(model, examples, threads, 0);
}

/* Returns the loss of a training pass, for layers that an evaluation computes differently (batch normalisation, dropout). */
static double training_loss(struct bench *b)
{
    struct error error = ERROR_INIT;
    struct graph_pass pass = bench_pass(b);
    pass.gradients = calloc((size_t)graph_layout(b->graph)->elements, sizeof(float));
    cr_assert_eq(graph_forward_backward(b->graph, b->stream, &pass, &error), 0, "%s", error.message);
    cr_assert_eq(device_stream_synchronise(b->stream, &error), 0, "%s", error.message);
    free(pass.gradients);
    return b->sums.loss;
}

static double loss(struct bench *b)
{
    struct error error = ERROR_INIT;
    struct graph_pass pass = bench_pass(b);
    cr_assert_eq(graph_evaluate(b->graph, b->stream, &pass, &error), 0, "%s", error.message);
    cr_assert_eq(device_stream_synchronise(b->stream, &error), 0, "%s", error.message);
    return b->sums.loss;
}

#define SAMPLES (IS_SANITIZED ? 3 : 12) /* of a tensor, at least */

/* Some elements of every tensor. A kink (rectifier, maximum) may spoil one difference, not many. */
static void check_differences(struct bench *b, double (*measure)(struct bench *b), const char *name)
{
    bench_backward(b, false);
    const struct parameter_layout *layout = graph_layout(b->graph);
    const float step = 2e-3f;
    int checked = 0, wrong = 0;
    for (unsigned t = 0; t < layout->tensor_count; t++) {
        const struct parameter_tensor *tensor = &layout->tensors[t];
        if (tensor->offset < layout->statistics)
            continue;
        int64_t stride = tensor->elements > SAMPLES ? tensor->elements / SAMPLES : 1;
        int wrong_here = 0, checked_here = 0;
        for (int64_t i = tensor->offset; i < tensor->offset + tensor->elements; i += stride) {
            float value = b->parameters[i];
            b->parameters[i] = value + step;
            double above = measure(b);
            b->parameters[i] = value - step;
            double below = measure(b);
            b->parameters[i] = value;
            double expected = (above - below) / (2 * (double)step), found = (double)b->gradients[i];
            wrong_here += fabs(found - expected) > 0.02 * (fabs(expected) + 0.05);
            checked_here++;
        }
        cr_expect_leq(wrong_here, checked_here / 4, "%s, %s: %d of %d gradients are wrong", name, tensor->name,
                      wrong_here, checked_here);
        checked += checked_here;
        wrong += wrong_here;
    }
    cr_assert_leq(wrong, checked / 20, "%s: %d of %d gradients are wrong", name, wrong, checked);
}

#define SIZES(type_, units_, filters_, kernel_, stride_, padding_, size_)                                              \
    .type = (type_), .units = (units_), .filters = (filters_), .kernel = (kernel_), .stride = (stride_),               \
    .padding = (padding_), .size = (size_), .heads = U, .bias = true
static struct layer_spec convolutional_layers[] = {
    {SIZES(LAYER_CONV2D, U, 5, 3, U, 1, U)},   {SIZES(LAYER_RELU, U, U, U, U, U, U)},
    {SIZES(LAYER_MAX_POOL, U, U, U, U, U, 2)}, {SIZES(LAYER_CONV2D, U, 6, 3, 2, 1, U)},
    {SIZES(LAYER_TANH, U, U, U, U, U, U)},     {SIZES(LAYER_AVERAGE_POOL, U, U, U, 1, 1, 3)},
    {SIZES(LAYER_FLATTEN, U, U, U, U, U, U)},  {SIZES(LAYER_DENSE, 9, U, U, U, U, U)},
    {SIZES(LAYER_GELU, U, U, U, U, U, U)},     {SIZES(LAYER_DENSE, 4, U, U, U, U, U)},
};
static const struct model_spec convolutional = {.input_shape = {10, 9, 2},
                                                .input_rank = 3,
                                                .layers = convolutional_layers,
                                                .layer_count = 10,
                                                .loss = LOSS_SOFTMAX_CROSS_ENTROPY};

static struct layer_spec residual_layers[] = {
    {.name = "a", SIZES(LAYER_DENSE, 12, U, U, U, U, U)},
    {.name = "n", SIZES(LAYER_LAYER_NORM, U, U, U, U, U, U)},
    {.name = "r", SIZES(LAYER_RELU, U, U, U, U, U, U)},
    {.name = "b", SIZES(LAYER_DENSE, 12, U, U, U, U, U)},
    {.name = "s", .inputs = {"r", "b"}, .input_count = 2, SIZES(LAYER_ADD, U, U, U, U, U, U)},
    {.name = "t", .inputs = {"s", "a"}, .input_count = 2, SIZES(LAYER_ADD, U, U, U, U, U, U)},
    {.name = "c", SIZES(LAYER_DENSE, 3, U, U, U, U, U)},
};
static const struct model_spec residual = {
    .input_shape = {7}, .input_rank = 1, .layers = residual_layers, .layer_count = 7, .loss = LOSS_MEAN_SQUARED_ERROR};

static const struct model_spec transformer = {
    .preset = PRESET_GPT_BYTES, .width = 24, .depth = 2, .heads = 3, .context = 11};
/* Without rectifiers, because their kinks would spoil many differences. */
#define UNSET .units = U, .heads = U, .size = U
static struct layer_spec normalised_layers[] = {
    {.name = "c1", .type = LAYER_CONV2D, .filters = 4, .kernel = 3, .stride = U, .padding = 1, UNSET},
    {.name = "n1", .type = LAYER_BATCH_NORM, UNSET},
    {.name = "t1", .type = LAYER_TANH, UNSET},
    {.name = "c2", .type = LAYER_CONV2D, .filters = 6, .kernel = 3, .stride = 2, .padding = 1, UNSET},
    {.name = "n2", .type = LAYER_BATCH_NORM, UNSET},
    {.name = "s", .type = LAYER_SHORTCUT, .inputs = {"t1"}, .input_count = 1, .filters = 6, .stride = 2, UNSET},
    {.name = "a", .type = LAYER_ADD, .inputs = {"n2", "s"}, .input_count = 2, UNSET},
    {.name = "g", .type = LAYER_GLOBAL_AVERAGE_POOL, UNSET},
    {.name = "d", .type = LAYER_DENSE, .units = 3, .heads = U, .size = U, .bias = true},
};
static const struct model_spec normalised = {.input_shape = {7, 7, 2},
                                             .input_rank = 3,
                                             .layers = normalised_layers,
                                             .layer_count = 9,
                                             .loss = LOSS_SOFTMAX_CROSS_ENTROPY};
/* A value that is read three times, twice by one layer; and a layer in slices. */
static struct layer_spec concatenated_layers[] = {
    {.name = "a", .type = LAYER_DENSE, .units = 6, .heads = U, .size = U, .bias = true, .device = U},
    {.name = "t", .type = LAYER_TANH, UNSET},
    {.name = "b",
     .type = LAYER_DENSE,
     .units = 5,
     .heads = U,
     .size = U,
     .bias = true,
     .device = U,
     .devices = {0, 1, 2},
     .device_count = 3},
    {.name = "c", .type = LAYER_CONCAT, .inputs = {"t", "b", "t"}, .input_count = 3, UNSET},
    {.name = "d", .type = LAYER_DENSE, .units = 3, .heads = U, .size = U, .bias = true},
};
static const struct model_spec concatenated = {.input_shape = {7},
                                               .input_rank = 1,
                                               .layers = concatenated_layers,
                                               .layer_count = 5,
                                               .loss = LOSS_SOFTMAX_CROSS_ENTROPY};
static const struct model_spec resnet = {
    .preset = PRESET_RESNET20, .width = 4, .depth = 1, .input_shape = {8, 8, 2}, .input_rank = 3, .classes = 5};
static const struct model_spec tied = {
    .preset = PRESET_GPT2_124M, .width = 24, .depth = 2, .heads = 3, .context = 9, .vocabulary = 37, .dropout = 0.25};
/* A value that goes past one branch, and again past that and the next. */
#define DENSE_OF(units_) .type = LAYER_DENSE, .units = (units_), .heads = U, .size = U, .bias = true
static struct layer_spec twice_past_layers[] = {
    {.name = "a", DENSE_OF(6)},
    {.name = "n", .type = LAYER_LAYER_NORM, UNSET},
    {.name = "b", DENSE_OF(6)},
    {.name = "s", .type = LAYER_ADD, .inputs = {"a", "b"}, .input_count = 2, UNSET},
    {.name = "m", .type = LAYER_LAYER_NORM, UNSET},
    {.name = "c", DENSE_OF(6)},
    {.name = "t", .type = LAYER_ADD, .inputs = {"c", "a"}, .input_count = 2, UNSET},
    {.name = "d", DENSE_OF(3)},
};
static const struct model_spec twice_past = {.input_shape = {7},
                                             .input_rank = 1,
                                             .layers = twice_past_layers,
                                             .layer_count = 8,
                                             .loss = LOSS_SOFTMAX_CROSS_ENTROPY};
static struct layer_spec regression_layers[] = {
    {.name = "only", .type = LAYER_DENSE, .units = 5, .heads = U, .size = U, .bias = true}};
static const struct model_spec regression = {.input_shape = {6},
                                             .input_rank = 1,
                                             .layers = regression_layers,
                                             .layer_count = 1,
                                             .loss = LOSS_SOFTMAX_CROSS_ENTROPY};
static const struct model_spec lenet = {.preset = PRESET_LENET, .width = FIELD_UNSET, .depth = FIELD_UNSET};

static struct {
    const struct device_backend *own;
    int copies, additions;
} watched;

static void watch(struct device_stream *stream, enum device_operation operation, const void *arguments)
{
    watched.copies += operation == OPERATION_copy;
    watched.additions += operation == OPERATION_axpy;
    watched.own->launch(stream, operation, arguments);
}

/* How often gradients are copied and added up apart in a pass over it. */
static void check_moves(const struct model_spec *model, int copies, int additions)
{
    struct bench b = open_bench(model, 2, 2);
    watched.own = b.stream->backend;
    watched.copies = watched.additions = 0;
    struct device_backend watching = *watched.own;
    watching.launch = watch;
    b.stream->backend = &watching;
    bench_backward(&b, false);
    b.stream->backend = watched.own;
    cr_expect_eq(watched.copies, copies, "%d copies", watched.copies);
    cr_expect_eq(watched.additions, additions, "%d additions", watched.additions);
    bench_close(&b);
}

Test(gradients, past_a_residual_branch_none_is_copied)
{
    check_moves(&transformer, 0, 0);
    check_moves(&twice_past, 0, 1);
}

Test(gradients, a_split_layer_has_one_weight)
{
    struct bench b = open_bench(&concatenated, 5, 2);
    cr_expect_not_null(parameter_layout_find(graph_layout(b.graph), "b.weight"));
    cr_expect_eq(graph_layout(b.graph)->tensor_count, 6);
    bench_close(&b);
}

/* `logit_rows`: logits by parts that do not end with an example; an output with a bias behind a rectifier's mask, one that reads the
 * batch. */
static const struct {
    const char *name;
    const struct model_spec *model;
    int64_t examples, logit_rows;
    double (*measure)(struct bench *b);
} differences[] = {
    {"convolutions, pools and activations", &convolutional, 3, 0, loss},
    {"branches and a squared error", &residual, 5, 0, loss},
    {"a value that goes past two branches", &twice_past, 5, 0, loss},
    {"values side by side and a split layer", &concatenated, 5, 0, loss},
    {"a transformer", &transformer, 2, 0, loss},
    {"a residual network with batch normalisation", &normalised, 6, 0, training_loss},
    {"a tied output and dropout", &tied, 3, 0, training_loss},
    {"logits by parts: a tied output and dropout", &tied, 3, 7, training_loss},
    {"logits by parts: a transformer", &transformer, 2, 5, loss},
    {"logits by parts: convolutions", &convolutional, 5, 2, loss},
    {"logits by parts: a regression", &regression, 7, 3, loss},
};

Test(gradients, are_those_of_finite_differences)
{
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++) {
        struct bench b = open_rows(differences[i].model, differences[i].examples, 2, differences[i].logit_rows);
        check_differences(&b, differences[i].measure, differences[i].name);
        bench_close(&b);
    }
}

static void same_bits_whatever_the_threads(const struct model_spec *model, int64_t examples)
{
    struct bench one = open_bench(model, examples, 1);
    bench_backward(&one, false);
    for (int threads = 2; threads <= 3; threads++) {
        struct bench many = open_bench(model, examples, threads);
        bench_backward(&many, false);
        cr_assert_eq(memcmp(one.gradients, many.gradients, (size_t)graph_layout(one.graph)->elements * sizeof(float)),
                     0);
        cr_assert_eq(one.sums.loss, many.sums.loss);
        bench_close(&many);
    }
    bench_close(&one);
}

Test(gradients, bits_do_not_depend_on_threads)
{
    same_bits_whatever_the_threads(&convolutional, 37);
    same_bits_whatever_the_threads(&transformer, 5);
    same_bits_whatever_the_threads(&lenet, 21);
    same_bits_whatever_the_threads(&resnet, 13);
    same_bits_whatever_the_threads(&tied, 4);
}

static void accumulating_adds_finished_gradients(const struct model_spec *model)
{
    struct bench b = open_bench(model, 6, 2);
    size_t elements = (size_t)graph_layout(b.graph)->elements;
    bench_backward(&b, false);
    float *alone = malloc(elements * sizeof *alone);
    memcpy(alone, b.gradients, elements * sizeof *alone);
    bench_backward(&b, true);
    for (size_t i = 0; i < elements; i++)
        cr_assert_eq(b.gradients[i], alone[i] + alone[i]);
    free(alone);
    bench_close(&b);
}

Test(gradients, accumulating_adds_the_finished_gradients_of_a_shard)
{
    accumulating_adds_finished_gradients(&convolutional);
    accumulating_adds_finished_gradients(&residual);
    accumulating_adds_finished_gradients(&transformer);
    accumulating_adds_finished_gradients(&resnet);
    accumulating_adds_finished_gradients(&tied);
}

Test(gradients, a_pass_is_the_same_in_a_larger_plan)
{
    struct bench exact = open_bench(&convolutional, 3, 1), larger = open_bench(&convolutional, 20, 1);
    larger.examples = 3;
    bench_backward(&exact, false);
    bench_backward(&larger, false);
    cr_assert_eq(memcmp(exact.gradients, larger.gradients, (size_t)graph_layout(exact.graph)->elements * sizeof(float)),
                 0);
    bench_close(&exact);
    bench_close(&larger);
}

Test(gradients, an_empty_shard_gives_zeros)
{
    const struct model_spec *models[] = {&convolutional, &residual, &transformer, &resnet, &tied};
    for (size_t m = 0; m < 5; m++) {
        struct bench b = open_bench(models[m], 2, 2);
        memset(b.gradients, 0x41, (size_t)graph_layout(b.graph)->elements * sizeof(float));
        b.examples = 0;
        bench_backward(&b, false);
        for (int64_t i = 0; i < graph_layout(b.graph)->elements; i++)
            cr_assert_eq(b.gradients[i], 0.0f);
        cr_assert_eq(b.sums.count, 0);
        bench_close(&b);
    }
}

Test(gradients, buckets_cover_the_layout_once_and_are_announced)
{
    struct bench b = open_bench(&lenet, 2, 1);
    bench_backward(&b, false);
    int64_t end = graph_layout(b.graph)->elements;
    for (unsigned i = 0; i < graph_bucket_count(b.graph); i++) {
        struct graph_bucket bucket = graph_bucket(b.graph, i);
        cr_assert_eq(bucket.offset + bucket.elements, end);
        cr_assert(bucket.elements > 0 && bucket.elements * 4 <= GRAPH_BUCKET_BYTES);
        cr_assert(device_event_is_done(graph_bucket_event(b.graph, i)));
        end = bucket.offset;
    }
    cr_assert_eq(end, 0);
    bench_close(&b);
}

Test(gradients, an_evaluation_plan_shares_memory_and_gives_the_same_loss)
{
    const struct model_spec *models[] = {&convolutional, &residual, &transformer, &lenet, &resnet, &tied};
    for (size_t m = 0; m < 6; m++) {
        struct bench b = open_bench(models[m], 3, 2);
        double expected = loss(&b);
        struct memory_plan training, evaluation;
        graph_memory_plan(b.graph, 0, &training);
        graph_free(b.graph);
        struct error error = ERROR_INIT;
        struct graph_options options = {
            .device = b.device, .model = models[m], .max_examples = 3, .evaluation_only = true};
        cr_assert_eq(graph_new(&options, &b.graph, &error), 0, "%s", error.message);
        cr_assert_eq(loss(&b), expected);
        graph_memory_plan(b.graph, 0, &evaluation);
        cr_assert_lt(evaluation.bytes[MEMORY_ACTIVATIONS], training.bytes[MEMORY_ACTIVATIONS]);
        bench_close(&b);
    }
}

/* Two shards of one batch leave the steps that bring the running values towards the shards' mean, weighted by examples. */
Test(gradients, running_statistics_step_towards_the_batch_and_add_up_over_shards)
{
    struct bench b = open_bench(&resnet, 6, 2);
    const struct parameter_layout *layout = graph_layout(b.graph);
    struct error error = ERROR_INIT;
    const struct example_format *format = graph_example_format(b.graph);
    struct graph_pass pass = bench_pass(&b);
    float *whole = calloc((size_t)layout->elements, sizeof(float));
    pass.scale = 1.0f / 6;
    for (int shard = 0; shard < 2; shard++) {
        pass.inputs = (char *)b.inputs + (size_t)shard * 2 * example_input_bytes(format);
        pass.targets = (char *)b.targets + (size_t)shard * 2 * example_target_bytes(format);
        pass.examples = shard ? 4 : 2;
        pass.accumulate = shard > 0;
        cr_assert_eq(graph_forward_backward(b.graph, b.stream, &pass, &error), 0);
        cr_assert_eq(device_stream_synchronise(b.stream, &error), 0);
    }
    const struct parameter_tensor *mean = parameter_layout_find(layout, "conv1.norm.running_mean");
    cr_assert(mean && mean->offset < layout->statistics);
    memcpy(whole, b.gradients, (size_t)layout->elements * sizeof(float));
    /* All in one: the mean of the first normalisation is the mean of the shards', weighted. */
    pass = bench_pass(&b);
    pass.scale = 1.0f / 6;
    cr_assert_eq(graph_forward_backward(b.graph, b.stream, &pass, &error), 0);
    cr_assert_eq(device_stream_synchronise(b.stream, &error), 0);
    for (int64_t i = mean->offset; i < mean->offset + mean->elements; i++) {
        cr_assert_neq(b.gradients[i], 0.0f);
        cr_assert_float_eq(b.gradients[i], whole[i], 1e-6);
    }
    free(whole);
    bench_close(&b);
}

Test(gradients, dropout_is_a_function_of_seed_step_and_example)
{
    struct bench b = open_bench(&tied, 4, 2);
    struct error error = ERROR_INIT;
    const struct example_format *format = graph_example_format(b.graph);
    struct graph_pass pass = bench_pass(&b);
    pass.seed = 5;
    pass.step = 9;
    double sums[4];
    for (int part = 0; part < 4; part++) { /* whole; its two halves; the same at another step */
        pass.examples = part == 1 || part == 2 ? 2 : 4;
        pass.first_example = part == 2 ? 2 : 0;
        pass.step = part == 3 ? 10 : 9;
        pass.inputs = (char *)b.inputs + (size_t)pass.first_example * example_input_bytes(format);
        pass.targets = (char *)b.targets + (size_t)pass.first_example * example_target_bytes(format);
        cr_assert_eq(graph_forward_backward(b.graph, b.stream, &pass, &error), 0);
        cr_assert_eq(device_stream_synchronise(b.stream, &error), 0);
        sums[part] = b.sums.loss;
    }
    cr_assert_float_eq(sums[0], sums[1] + sums[2], 1e-9);
    cr_assert_neq(sums[0], sums[3]);
    bench_close(&b);
}
