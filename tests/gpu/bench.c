/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu-bench: milliseconds a step of the presets on a GPU, as OneDevice takes them: forward, backward, norm, update, the
 * batch's copy from pinned memory, and the host that hears of each step. Reading examples is not measured. Three times:
 * in CUDA graphs, launch by launch, and with a host that waits for the GPU in each step.
 *
 *     gpu-bench [seconds a measurement, default 1 [model batch]]     prints: model batch ms units/s, ms launched, ms waiting
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "tests/gpu/learner.h"
#include "worker/data/dataset_format.h"
#include "worker/data/sampler.h"
#include "worker/device/device.h"
#include "worker/strategy/strategy.h"

#define SGD(rate)                                                                                                      \
    {                                                                                                                  \
        .type = OPTIMIZER_SGD, .learning_rate = rate                                                                   \
    }
#define ADAMW                                                                                                          \
    {                                                                                                                  \
        .type = OPTIMIZER_ADAMW, .learning_rate = 3e-4, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8                  \
    }
#define MLP                                                                                                            \
    {                                                                                                                  \
        .preset = PRESET_MLP, .depth = FIELD_UNSET, .width = FIELD_UNSET                                               \
    }
#define LENET                                                                                                          \
    {                                                                                                                  \
        .preset = PRESET_LENET, .depth = FIELD_UNSET                                                                   \
    }
#define GPT                                                                                                            \
    {                                                                                                                  \
        .preset = PRESET_GPT_BYTES, .depth = 4, .width = 128, .heads = 4, .context = 256                               \
    }

/* The batches of the CPU's benchmark, and larger ones. */
#define WORK(name_, model_, optimizer_, batch_)                                                                        \
    {                                                                                                                  \
        .name = name_, .model = model_, .optimizer = optimizer_, .batch = batch_                                       \
    }
static const struct work works[] = {
    WORK("mlp", MLP, SGD(0.1), 128),  WORK("lenet", LENET, SGD(0.05), 128),  WORK("gpt-bytes", GPT, ADAMW, 16),
    WORK("mlp", MLP, SGD(0.1), 4096), WORK("lenet", LENET, SGD(0.05), 2048), WORK("gpt-bytes", GPT, ADAMW, 128),
};

/* The buffers keep what they hold: zeros. */
static int read_nothing(const struct dataset *dataset, int64_t index, void *input, void *target, struct error *error)
{
    (void)dataset, (void)index, (void)input, (void)target, (void)error;
    return 0;
}

static int find_state(void *context, struct error *error)
{
    (void)context, (void)error;
    return 0;
}

static void take_steps(struct strategy *strategy, const struct work *work, int count)
{
    struct error error = ERROR_INIT;
    struct strategy_result result;
    for (int i = 0; i < count; i++)
        must(strategy_step(strategy, work->optimizer.learning_rate, 0, &result, &error), &error);
}

static double seconds_a_step(struct learner *learner, bool waits, bool singly, double seconds)
{
    const struct work *work = learner->work;
    const struct dataset_kind kind = {.read = read_nothing};
    struct dataset dataset = {
        .kind = &kind, .format = *graph_example_format(learner->graph), .count = 1000 * work->batch};
    const struct sampler sampler = {.seed = 7, .count = dataset.count};
    static const int64_t without_end = INT64_MAX;
    const struct strategy_options options = {.type = STRATEGY_ONE_DEVICE,
                                             .device = learner->side->device,
                                             .graph = learner->graph,
                                             .dataset = &dataset,
                                             .sampler = &sampler,
                                             .optimizer = &work->optimizer,
                                             .state = &learner->state,
                                             .global_batch = work->batch,
                                             .logical_shards = 1,
                                             .total_steps = &without_end,
                                             .waits_for_device = waits,
                                             .launches_singly = singly,
                                             .restore = find_state};
    struct error error = ERROR_INIT;
    struct strategy *strategy = NULL;
    must(strategy_open(&options, &strategy, &error), &error);
    must(strategy_reform(strategy, &error), &error);
    take_steps(strategy, work, 10);
    int64_t steps = 0, start = clock_monotonic_ns(), now = start;
    for (; now - start < (int64_t)(seconds * 1e9); steps++, now = clock_monotonic_ns())
        take_steps(strategy, work, 1);
    strategy_close(strategy);
    return (double)(now - start) * 1e-9 / (double)steps;
}

static void measure(const struct work *work, struct side *gpu, double seconds)
{
    struct learner learner;
    learner_open(&learner, work, gpu);
    double graphs = seconds_a_step(&learner, false, false, seconds);
    double launches = seconds_a_step(&learner, false, true, seconds);
    double waits = seconds_a_step(&learner, true, true, seconds);
    int64_t units = work->batch * graph_example_format(learner.graph)->target_elements;
    printf("%s %lld %.4f %.0f %.4f %.4f\n", work->name, (long long)work->batch, graphs * 1e3, (double)units / graphs,
           launches * 1e3, waits * 1e3);
    fflush(stdout);
    learner_close(&learner);
}

static bool is_wanted(const struct work *work, int argc, char **argv)
{
    return argc < 4 || (strcmp(work->name, argv[2]) == 0 && work->batch == strtoll(argv[3], NULL, 10));
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
    struct side gpu;
    side_open(&gpu, DEVICE_TYPE_GPU);
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (is_wanted(&works[i], argc, argv))
            measure(&works[i], &gpu, seconds);
    side_close(&gpu);
    return 0;
}
