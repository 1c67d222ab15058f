/* SPDX-License-Identifier: Apache-2.0
 *
 * A model that gpu-bench trains, as OneDevice does: the batch is read once, and
 * copied to the GPU for each step from pinned memory.
 */
#ifndef COXSWAIN_TESTS_GPU_BENCH_TRAINEE_H
#define COXSWAIN_TESTS_GPU_BENCH_TRAINEE_H

#include "worker/data/dataset_format.h"
#include "worker/data/sampler.h"
#include "worker/device/device.h"
#include "worker/model/graph.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/strategy.h"

struct bench_work {
    const char *name;
    struct model_spec model;
    struct optimizer_spec optimizer;
    enum precision precision;
    int64_t batch; /* of a step */
};

/* Returns NULL if there is no work of this name. */
const struct bench_work *bench_work_find(const char *name);

/* How a step runs: captured as CUDA graphs, launched one by one, or launched with a host that waits for each step. */
enum bench_pace { BENCH_GRAPHS, BENCH_LAUNCHES, BENCH_WAITS };

struct bench_trainee {
    struct bench_work work;
    int64_t micro; /* examples of a pass; gradients of a batch's passes are accumulated */
    struct device *device;
    struct graph *graph;
    struct training_state state;
    struct dataset_kind kind;
    struct dataset dataset;
    struct sampler sampler;
    struct strategy *strategy;
};

/* If `micro` is 0, it takes the largest number of examples a pass that fits `share` of the free memory by the memory plan: the batch,
 * half of it, a quarter, … */
int bench_trainee_open(struct bench_trainee *trainee, const struct bench_work *work, struct device *device,
                       int64_t micro, double share, enum bench_pace pace, struct error *error);
void bench_trainee_close(struct bench_trainee *trainee);
/* The GPU may still run the step, and the next one's passes, until settled. */
int bench_trainee_step(struct bench_trainee *trainee, struct error *error);
int bench_trainee_settle(struct bench_trainee *trainee, struct error *error);
/* Returns the number of tokens or images of a step. */
int64_t bench_trainee_units(const struct bench_trainee *trainee);

#endif
