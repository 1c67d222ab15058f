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

/* NULL: there is none of that name. */
const struct bench_work *bench_work_find(const char *name);

/* How its steps go: captured as CUDA graphs, launched one by one, or that and with a host that waits for each. */
enum bench_pace { BENCH_GRAPHS, BENCH_LAUNCHES, BENCH_WAITS };

struct bench_trainee {
    struct bench_work work;
    int64_t micro; /* examples of a pass; the others of a batch are accumulated */
    struct device *device;
    struct graph *graph;
    struct training_state state;
    struct dataset_kind kind;
    struct dataset dataset;
    struct sampler sampler;
    struct strategy *strategy;
};

/* `micro` 0: as many examples a pass as fit `share` of the memory that is free, by the memory plan: the batch, or half of it, or
 * half of that … */
int bench_trainee_open(struct bench_trainee *trainee, const struct bench_work *work, struct device *device,
                       int64_t micro, double share, enum bench_pace pace, struct error *error);
void bench_trainee_close(struct bench_trainee *trainee);
/* The GPU may still be at it, and at the next one's passes, until settled. */
int bench_trainee_step(struct bench_trainee *trainee, struct error *error);
int bench_trainee_settle(struct bench_trainee *trainee, struct error *error);
/* What people count: tokens or images of a step. */
int64_t bench_trainee_units(const struct bench_trainee *trainee);

#endif
