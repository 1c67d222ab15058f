/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole models: the GPU's gradients against the CPU's and against finite
 * differences, some steps of training on both, states carried from one to the
 * other, and the same bits from run to run.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "tests/gpu/learner.h"

#define LAYER(kind, ...)                                                                                               \
    {                                                                                                                  \
        .type = kind, .units = FIELD_UNSET, .filters = FIELD_UNSET, .kernel = FIELD_UNSET, .stride = FIELD_UNSET,      \
        .padding = FIELD_UNSET, .size = FIELD_UNSET, .heads = FIELD_UNSET, .bias = true, __VA_ARGS__                   \
    }
_Pragma("GCC diagnostic ignored \"-Woverride-init\"") /* LAYER's defaults */
    static struct layer_spec odd_layers[] = {
        LAYER(LAYER_CONV2D, .filters = 5, .kernel = 3, .padding = 1),
        LAYER(LAYER_RELU),
        LAYER(LAYER_MAX_POOL, .size = 2),
        LAYER(LAYER_CONV2D, .filters = 6, .kernel = 3, .stride = 2, .padding = 1),
        LAYER(LAYER_TANH),
        LAYER(LAYER_AVERAGE_POOL, .size = 3, .stride = 1, .padding = 1),
        LAYER(LAYER_FLATTEN),
        LAYER(LAYER_DENSE, .name = "wide", .units = 9),
        LAYER(LAYER_GELU),
        LAYER(LAYER_DENSE, .name = "back", .units = 9),
        LAYER(LAYER_ADD, .inputs = {"back", "wide"}, .input_count = 2),
        LAYER(LAYER_LAYER_NORM),
        LAYER(LAYER_DENSE, .units = 7),
};

/* The backward pass reads the inputs of this GELU, but not its outputs. */
static struct layer_spec skipped_gelu[] = {
    LAYER(LAYER_DENSE, .name = "in", .units = 128),
    LAYER(LAYER_DENSE, .name = "wide", .units = 128),
    LAYER(LAYER_GELU, .name = "gelu"),
    LAYER(LAYER_ADD, .inputs = {"gelu", "in"}, .input_count = 2),
    LAYER(LAYER_DENSE, .name = "behind", .units = 128),
    LAYER(LAYER_GELU),
    LAYER(LAYER_DENSE, .units = 7),
};

/* A projection around the first block and identities around the second and third. The last sum has a pool as its only reader. */
static struct layer_spec bottlenecks[] = {
    LAYER(LAYER_CONV2D, .filters = 8, .kernel = 3, .padding = 1, .bias = false),
    LAYER(LAYER_BATCH_NORM),
    LAYER(LAYER_RELU),
    LAYER(LAYER_MAX_POOL, .name = "pool", .size = 3, .stride = 2, .padding = 1),
    LAYER(LAYER_CONV2D, .filters = 5, .kernel = 1, .bias = false),
    LAYER(LAYER_BATCH_NORM),
    LAYER(LAYER_RELU),
    LAYER(LAYER_CONV2D, .filters = 16, .kernel = 1, .bias = false),
    LAYER(LAYER_BATCH_NORM, .name = "branch1"),
    LAYER(LAYER_CONV2D, .filters = 16, .kernel = 1, .bias = false, .inputs = {"pool"}, .input_count = 1),
    LAYER(LAYER_BATCH_NORM, .name = "past1"),
    LAYER(LAYER_ADD, .inputs = {"past1", "branch1"}, .input_count = 2),
    LAYER(LAYER_RELU, .name = "block1"),
    LAYER(LAYER_CONV2D, .filters = 8, .kernel = 3, .padding = 1, .bias = false),
    LAYER(LAYER_BATCH_NORM),
    LAYER(LAYER_RELU),
    LAYER(LAYER_CONV2D, .filters = 16, .kernel = 1, .bias = false),
    LAYER(LAYER_BATCH_NORM, .name = "branch2"),
    LAYER(LAYER_ADD, .inputs = {"block1", "branch2"}, .input_count = 2),
    LAYER(LAYER_RELU, .name = "block2"),
    LAYER(LAYER_CONV2D, .filters = 16, .kernel = 1, .bias = false),
    LAYER(LAYER_BATCH_NORM, .name = "branch3"),
    LAYER(LAYER_ADD, .inputs = {"branch3", "block2"}, .input_count = 2),
    LAYER(LAYER_RELU),
    LAYER(LAYER_AVERAGE_POOL, .size = 5, .stride = 5),
    LAYER(LAYER_FLATTEN),
    LAYER(LAYER_DENSE, .units = 7),
};

#define SGD                                                                                                            \
    {                                                                                                                  \
        .type = OPTIMIZER_SGD, .learning_rate = 0.05, .momentum = 0.9                                                  \
    }
#define SLOW_SGD                                                                                                       \
    {                                                                                                                  \
        .type = OPTIMIZER_SGD, .learning_rate = 0.01, .momentum = 0.9                                                  \
    }
#define ADAMW                                                                                                          \
    {                                                                                                                  \
        .type = OPTIMIZER_ADAMW, .learning_rate = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8                  \
    }
#define ODD_LAYERS                                                                                                     \
    {                                                                                                                  \
        .input_shape = {11, 9, 3}, .input_rank = 3, .layers = odd_layers, .layer_count = 13,                           \
        .loss = LOSS_SOFTMAX_CROSS_ENTROPY                                                                             \
    }
#define SMALL_GPT                                                                                                      \
    {                                                                                                                  \
        .preset = PRESET_GPT_BYTES, .depth = 1, .width = 12, .heads = 2, .context = 9                                  \
    }
#define SMALL_GPT2                                                                                                     \
    {                                                                                                                  \
        .preset = PRESET_GPT2_124M, .depth = 1, .width = 12, .heads = 2, .context = 9, .vocabulary = 61                \
    }
#define SMALL_RESNET                                                                                                   \
    {                                                                                                                  \
        .preset = PRESET_RESNET20, .width = 4, .depth = 1, .input_shape = {8, 8, 2}, .input_rank = 3, .classes = 5     \
    }
#define BOTTLENECKS                                                                                                    \
    {                                                                                                                  \
        .input_shape = {10, 9, 3}, .input_rank = 3, .layers = bottlenecks, .layer_count = 27,                          \
        .loss = LOSS_SOFTMAX_CROSS_ENTROPY                                                                             \
    }
#define WIDE_GPT2                                                                                                      \
    {                                                                                                                  \
        .preset = PRESET_GPT2_124M, .depth = 1, .width = 64, .heads = 2, .context = 128                                \
    }
#define ALIGNED_GPT                                                                                                    \
    {                                                                                                                  \
        .preset = PRESET_GPT_BYTES, .depth = 2, .width = 32, .heads = 2, .context = 16                                 \
    }
#define GPT_BYTES                                                                                                      \
    {                                                                                                                  \
        .preset = PRESET_GPT_BYTES, .depth = 4, .width = 128, .heads = 4, .context = 256                               \
    }
#define SKIPPED_GELU                                                                                                   \
    {                                                                                                                  \
        .input_shape = {24}, .input_rank = 1, .layers = skipped_gelu, .layer_count = 7,                                \
        .loss = LOSS_SOFTMAX_CROSS_ENTROPY                                                                             \
    }
#define BFLOAT16 .precision = PRECISION_BFLOAT16
#define FLOAT16 .precision = PRECISION_FLOAT16
static const struct work works[] = {
    {"odd layers", ODD_LAYERS, SGD, .batch = 5, .cut = true, .difference = 2e-3f},
    {"small gpt", SMALL_GPT, ADAMW, .batch = 3, .difference = 5e-3f},
    {"odd layers in bfloat16", ODD_LAYERS, SGD, .batch = 5, .cut = true, .coarse = true, .small = true, BFLOAT16},
    {"small gpt in bfloat16", SMALL_GPT, ADAMW, .batch = 3, .small = true, BFLOAT16},
    {"odd layers in float16", ODD_LAYERS, SGD, .batch = 5, .cut = true, .small = true, FLOAT16},
    {"small gpt in float16", SMALL_GPT, ADAMW, .batch = 3, .small = true, FLOAT16},
    {"odd layers in tf32", ODD_LAYERS, SGD, .batch = 5, .small = true, .precision = PRECISION_TF32},
    {"small gpt in tf32", SMALL_GPT, ADAMW, .batch = 3, .small = true, .precision = PRECISION_TF32},
    {"odd layers, logits by parts", ODD_LAYERS, SGD, .batch = 5, .logit_rows = 2, .difference = 2e-3f},
    {"small gpt2, logits by parts", SMALL_GPT2, ADAMW, .batch = 3, .logit_rows = 7, .difference = 5e-3f},
    {"small gpt2 in bfloat16, logits by parts", SMALL_GPT2, ADAMW, .batch = 3, .logit_rows = 7, .cut = true,
     .small = true, BFLOAT16},
    {"small gpt2, computed again", SMALL_GPT2, ADAMW, .batch = 3, .recompute = true, .difference = 5e-3f},
    {"small gpt2 in bfloat16, computed again", SMALL_GPT2, ADAMW, .batch = 3, .cut = true, .recompute = true,
     .small = true, BFLOAT16},
    {"bottlenecks", BOTTLENECKS, SLOW_SGD, .batch = 5, .cut = true, .difference = 1e-3f},
    {"bottlenecks in bfloat16", BOTTLENECKS, SLOW_SGD, .batch = 5, .cut = true, .coarse = true, .small = true,
     BFLOAT16},
    {"bottlenecks in float16", BOTTLENECKS, SLOW_SGD, .batch = 5, .cut = true, .small = true, FLOAT16},
    {"bottlenecks, computed again", BOTTLENECKS, SLOW_SGD, .batch = 5, .recompute = true, .small = true},
    {"bottlenecks in bfloat16, computed again", BOTTLENECKS, SLOW_SGD, .batch = 5, .coarse = true, .recompute = true,
     .small = true, BFLOAT16},
    {"small resnet", SMALL_RESNET, SGD, .batch = 4, .cut = true, .small = true},
    {"small resnet, computed again", SMALL_RESNET, SGD, .batch = 4, .recompute = true, .small = true},
    {"small gpt2 in float16, logits by parts", SMALL_GPT2, ADAMW, .batch = 3, .logit_rows = 7, .cut = true,
     .small = true, FLOAT16},
    {"aligned gpt in bfloat16", ALIGNED_GPT, ADAMW, .batch = 3, .small = true, .finished = true, BFLOAT16},
    {"aligned gpt in bfloat16, computed again", ALIGNED_GPT, ADAMW, .batch = 3, .small = true, .finished = true,
     .recompute = true, BFLOAT16},
    {"a GELU for a sum alone in bfloat16, computed again", SKIPPED_GELU, SGD, .batch = 40, .small = true,
     .finished = true, .recompute = true, BFLOAT16},
    {"mlp", {.preset = PRESET_MLP, .depth = FIELD_UNSET, .width = FIELD_UNSET}, SGD, .batch = 128},
    {"lenet", {.preset = PRESET_LENET, .depth = FIELD_UNSET}, SGD, .batch = 128},
    {"gpt-bytes", GPT_BYTES, ADAMW, .batch = 4},
    {"gpt-bytes in tf32", GPT_BYTES, ADAMW, .batch = 4, .precision = PRECISION_TF32},
    {"lenet in bfloat16", {.preset = PRESET_LENET, .depth = FIELD_UNSET}, SGD, .batch = 128, BFLOAT16},
    {"gpt-bytes in bfloat16", GPT_BYTES, ADAMW, .batch = 4, BFLOAT16},
    {"gpt-bytes, computed again", GPT_BYTES, ADAMW, .batch = 4, .recompute = true},
    {"gpt-bytes in bfloat16, computed again", GPT_BYTES, ADAMW, .batch = 4, .recompute = true, BFLOAT16},
    {"lenet in float16", {.preset = PRESET_LENET, .depth = FIELD_UNSET}, SGD, .batch = 128, FLOAT16},
    {"gpt-bytes in float16", GPT_BYTES, ADAMW, .batch = 4, FLOAT16},
    {"wide vocabulary, logits by parts", WIDE_GPT2, ADAMW, .batch = 24, .logit_rows = 2048},
    {"wide vocabulary in bfloat16, logits by parts", WIDE_GPT2, ADAMW, .batch = 24, .logit_rows = 2048, BFLOAT16},
};

/* With two-byte values, a sum in another order is sometimes rounded to the other neighbour. With TF32, which the CPU does not have, only
 * the GPU cuts factors. */
static double allowed(const struct work *work, double in_float32, double in_two_bytes)
{
    return work->precision == PRECISION_FLOAT32 ? in_float32 : in_two_bytes;
}

/* ---------------------------------------------------------------- gradients */

static void say(const struct work *work, bool ok, const char *what, double found, double other)
{
    char text[128];
    snprintf(text, sizeof text, "%s: %s", work->name, what);
    verdict(ok, text, "%.9g and %.9g", found, other);
}

/* The results of two learners with the same state on the same batch. */
struct comparison {
    bool same_bits;    /* of the gradients */
    double error;      /* of the gradients, relative */
    double losses[2];  /* the first's and the second's mean */
    double loss_error; /* relative */
    double memory[2];  /* bytes of activations */
};

static struct comparison compare(struct learner *learner, struct learner *other)
{
    struct graph_pass pass = learner_pass(learner), other_pass = learner_pass(other);
    struct memory_plan plan, other_plan;
    int64_t elements = learner->state.layout.elements;
    learner_backward(learner, &pass);
    learner_backward(other, &other_pass);
    float *found = learner_gradients(learner), *expected = learner_gradients(other);
    graph_memory_plan(learner->graph, 0, &plan);
    graph_memory_plan(other->graph, 0, &other_plan);
    struct comparison comparison = {
        .same_bits = memcmp(found, expected, (size_t)elements * sizeof *found) == 0,
        .error = relative_error(found, expected, elements),
        .losses = {learner_mean_loss(learner), learner_mean_loss(other)},
        .memory = {(double)plan.bytes[MEMORY_ACTIVATIONS], (double)other_plan.bytes[MEMORY_ACTIVATIONS]},
    };
    comparison.loss_error = fabs(comparison.losses[0] - comparison.losses[1]) / comparison.losses[1];
    free(found);
    free(expected);
    return comparison;
}

static void compare_gradients(const struct work *work, struct learner *cpu, struct learner *gpu)
{
    struct comparison to = compare(gpu, cpu);
    say(work, to.error < allowed(work, 1e-5, 2e-2), "gradients are the CPU's", to.error, 0);
    say(work, to.loss_error < allowed(work, 1e-6, 1e-3), "the loss is the CPU's", to.losses[0], to.losses[1]);
}

/* Accumulating over passes gives the same bits as adding finished gradients. */
static void check_accumulation(const struct work *work, struct learner *gpu)
{
    struct graph_pass pass = learner_pass(gpu);
    int64_t elements = gpu->state.layout.elements, wrong = 0;
    learner_backward(gpu, &pass);
    float *alone = learner_gradients(gpu);
    pass.accumulate = true;
    learner_backward(gpu, &pass);
    float *added = learner_gradients(gpu);
    for (int64_t i = 0; i < elements; i++)
        wrong += added[i] != alone[i] + alone[i];
    say(work, wrong == 0, "accumulated gradients have the bits of added ones", (double)wrong, (double)elements);
    free(added);
    free(alone);
}

static void check_no_examples(const struct work *work, struct learner *gpu)
{
    struct graph_pass pass = learner_pass(gpu);
    pass.examples = 0;
    learner_backward(gpu, &pass);
    float *gradients = learner_gradients(gpu);
    int64_t wrong = 0;
    for (int64_t i = 0; i < gpu->state.layout.elements; i++)
        wrong += gradients[i] != 0;
    const struct loss_sums *sums = gpu->sums;
    say(work, wrong == 0 && sums->count == 0 && sums->loss == 0, "no examples give zeros", (double)wrong, sums->loss);
    free(gradients);
}

/* Uses a training pass, which normalises by the batch's own statistics. */
static double loss_with(struct learner *gpu, int64_t i, float value)
{
    struct graph_pass pass = learner_pass(gpu);
    side_put(gpu->side, gpu->state.parameters + i, &value, sizeof value);
    learner_backward(gpu, &pass);
    return learner_mean_loss(gpu);
}

/* Checks a few elements of every tensor. A kink (rectifier, maximum) may make a few of them wrong. */
static void check_differences(const struct work *work, struct learner *gpu)
{
    struct graph_pass pass = learner_pass(gpu);
    learner_backward(gpu, &pass);
    float *gradients = learner_gradients(gpu);
    int wrong = 0, checked = 0;
    for (unsigned t = 0; t < gpu->state.layout.tensor_count; t++) {
        const struct parameter_tensor *tensor = &gpu->state.layout.tensors[t];
        if (tensor->offset < gpu->state.layout.statistics)
            continue; /* running statistics have steps and no gradients */
        int64_t stride = tensor->elements > 8 ? tensor->elements / 8 : 1;
        for (int64_t i = tensor->offset; i < tensor->offset + tensor->elements; i += stride, checked++) {
            float value = gpu->state.host.parameters[i];
            double above = loss_with(gpu, i, value + work->difference);
            double below = loss_with(gpu, i, value - work->difference);
            side_put(gpu->side, gpu->state.parameters + i, &value, sizeof value);
            double expected = (above - below) / (2 * (double)work->difference);
            wrong += fabs((double)gradients[i] - expected) > 0.02 * (fabs(expected) + 0.02);
        }
    }
    say(work, wrong <= checked / 20, "gradients are differences of the loss", wrong, checked);
    free(gradients);
}

/* ---------------------------------------------------------------- training */

static double state_error(struct learner *a, struct learner *b)
{
    struct error error = ERROR_INIT;
    must(training_state_to_host(&a->state, &error), &error);
    must(training_state_to_host(&b->state, &error), &error);
    return relative_error(a->state.host.parameters, b->state.host.parameters, a->state.layout.elements);
}

/* Copies the state span by span, like a checkpoint or a peer. */
static void carry_state(struct learner *from, struct learner *to)
{
    struct error error = ERROR_INIT;
    struct state_span source[TRAINING_STATE_SPANS_MAX], target[TRAINING_STATE_SPANS_MAX];
    must(training_state_to_host(&from->state, &error), &error);
    unsigned count = training_state_spans(&from->state, source);
    training_state_spans(&to->state, target);
    for (unsigned i = 0; i < count; i++)
        memcpy(target[i].bytes, source[i].bytes, source[i].length);
    must(training_state_to_device(&to->state, &error), &error);
}

/* Values take half as many bytes. */
static void check_memory(const struct work *work, struct side *gpu)
{
    struct error error = ERROR_INIT;
    struct memory_plan plans[2];
    for (int p = 0; p < 2; p++) {
        struct graph *graph = NULL;
        const struct graph_options options = {.device = gpu->device,
                                              .model = &work->model,
                                              .max_examples = 256,
                                              .precision = p ? work->precision : PRECISION_FLOAT32,
                                              .plan_only = true};
        must(graph_new(&options, &graph, &error), &error);
        graph_memory_plan(graph, 0, &plans[p]);
        graph_free(graph);
    }
    double part = (double)plans[1].bytes[MEMORY_ACTIVATIONS] / (double)plans[0].bytes[MEMORY_ACTIVATIONS];
    say(work, part < 0.7, "activations take little more than half of float32's memory", part, 0.5);
}

/* Compares with a learner of the same state that computes in another manner. */
static struct comparison compare_with(const struct work *manner, struct side *side, struct learner *gpu)
{
    struct learner other;
    learner_open(&other, manner, side);
    carry_state(gpu, &other);
    struct comparison comparison = compare(gpu, &other);
    learner_close(&other);
    return comparison;
}

static void say_memory(const struct work *work, const struct comparison *to)
{
    say(work, to->memory[0] <= to->memory[1], "with no more memory", to->memory[0], to->memory[1]);
}

static void check_parts(const struct work *work, struct learner *gpu)
{
    struct work whole = *work;
    whole.logit_rows = LOGIT_ROWS_ALL;
    struct comparison to = compare_with(&whole, gpu->side, gpu);
    say(work, to.error < allowed(work, 1e-5, 2e-2), "gradients are those of all logits at once", to.error, 0);
    say(work, to.loss_error < allowed(work, 1e-6, 1e-3), "so is the loss", to.losses[0], to.losses[1]);
    say_memory(work, &to);
}

static void check_recompute(const struct work *work, struct learner *gpu)
{
    struct work kept = *work;
    kept.recompute = false;
    struct comparison to = compare_with(&kept, gpu->side, gpu);
    say(work, to.same_bits, "not a bit differs from what is kept", to.error, 0);
    say_memory(work, &to);
}

static void check_training(const struct work *work, struct learner *cpu, struct learner *gpu)
{
    double start = learner_loss(gpu), on_cpu = 0, on_gpu = 0, worst = 0;
    for (int step = 0; step < 10; step++) {
        on_cpu = learner_train(cpu, 1);
        on_gpu = learner_train(gpu, 1);
        worst = fmax(worst, fabs(on_gpu - on_cpu) / on_cpu);
    }
    say(work, worst < allowed(work, 2e-3, 1e-2), "ten steps have the CPU's losses", on_gpu, on_cpu);
    say(work, on_gpu < start, "the loss falls", on_gpu, start);
    carry_state(gpu, cpu);
    say(work, state_error(cpu, gpu) == 0, "a state goes from GPU to CPU", state_error(cpu, gpu), 0);
    double next = learner_train(cpu, 1);
    carry_state(cpu, gpu);
    say(work, state_error(gpu, cpu) == 0, "and back", state_error(gpu, cpu), 0);
    on_cpu = learner_train(cpu, 1);
    on_gpu = learner_train(gpu, 1);
    say(work, fabs(on_gpu - on_cpu) < allowed(work, 1e-5, work->coarse ? 5e-3 : 2e-3) * on_cpu && on_gpu < next,
        "and training goes on there", on_gpu, on_cpu);
}

static uint32_t digest_after(const struct work *work, struct side *gpu, int steps)
{
    struct error error = ERROR_INIT;
    struct learner learner;
    learner_open(&learner, work, gpu);
    learner_train(&learner, steps);
    must(training_state_to_host(&learner.state, &error), &error);
    uint32_t digest = training_state_digest(&learner.state);
    learner_close(&learner);
    return digest;
}

static void check_bits(const struct work *work, struct side *gpu)
{
    uint32_t first = digest_after(work, gpu, 20), second = digest_after(work, gpu, 20);
    say(work, first == second, "twenty steps twice have the same bits", first, second);
}

/* Dense layers with GELUs, forward and backward, by cuBLASLt and by kernels: the results are near, but their bits differ. */
static void check_finishing(const struct work *work, struct side *fused, struct learner *gpu)
{
    struct learner other;
    learner_open(&other, work, fused);
    carry_state(gpu, &other);
    struct comparison to = compare(gpu, &other);
    say(work, to.error > 0 && to.error < allowed(work, 1e-5, 2e-2), "cuBLASLt takes its GELUs, near those of kernels",
        to.error, 0);
    check_accumulation(work, &other);
    if (work->recompute)
        check_recompute(work, &other);
    learner_close(&other);
    check_bits(work, fused);
}

void check_models(struct side *cpu, struct side *gpu, struct side *fused, bool small)
{
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        const struct work *work = &works[i];
        if (small && work->difference == 0 && !work->small)
            continue;
        struct learner on_cpu, on_gpu;
        learner_open(&on_cpu, work, cpu);
        learner_open(&on_gpu, work, gpu);
        compare_gradients(work, &on_cpu, &on_gpu);
        check_accumulation(work, &on_gpu);
        check_no_examples(work, &on_gpu);
        if (work->precision == PRECISION_BFLOAT16 || work->precision == PRECISION_FLOAT16)
            check_memory(work, gpu);
        if (work->recompute)
            check_recompute(work, &on_gpu);
        if (work->logit_rows > 0)
            check_parts(work, &on_gpu);
        if (work->cut)
            check_stages(&on_gpu);
        if (work->difference > 0)
            check_differences(work, &on_gpu);
        if (work->finished)
            check_finishing(work, fused, &on_gpu);
        check_training(work, &on_cpu, &on_gpu);
        learner_close(&on_gpu);
        learner_close(&on_cpu);
        check_bits(work, gpu);
    }
}
