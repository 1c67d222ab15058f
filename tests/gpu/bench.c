/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu-bench: milliseconds a step of the presets on a GPU: forward, backward,
 * update, and a wait at the end of every step, as the training loop does it. The
 * batch is copied from pinned memory in each step, as there.
 *
 *     gpu-bench [seconds a measurement, default 1]     prints: model batch ms units/s
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "tests/gpu/learner.h"
#include "worker/device/device.h"

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
static const struct work works[] = {
    {"mlp", MLP, SGD(0.1), 128, 0},  {"lenet", LENET, SGD(0.05), 128, 0},  {"gpt-bytes", GPT, ADAMW, 16, 0},
    {"mlp", MLP, SGD(0.1), 4096, 0}, {"lenet", LENET, SGD(0.05), 2048, 0}, {"gpt-bytes", GPT, ADAMW, 128, 0},
};

static void measure(const struct work *work, struct side *gpu, double seconds)
{
    struct learner learner;
    learner_open(&learner, work, gpu);
    for (int i = 0; i < 10; i++)
        learner_train(&learner, 1);
    int64_t steps = 0, start = clock_monotonic_ns(), now = start;
    for (; now - start < (int64_t)(seconds * 1e9); steps++, now = clock_monotonic_ns())
        learner_train(&learner, 1);
    double step = (double)(now - start) * 1e-9 / (double)steps;
    int64_t units = work->batch * graph_example_format(learner.graph)->target_elements;
    printf("%s %lld %.4f %.0f\n", work->name, (long long)work->batch, step * 1e3, (double)units / step);
    fflush(stdout);
    learner_close(&learner);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
    struct side gpu;
    side_open(&gpu, DEVICE_TYPE_GPU);
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        measure(&works[i], &gpu, seconds);
    side_close(&gpu);
    return 0;
}
