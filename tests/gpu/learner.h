/* SPDX-License-Identifier: Apache-2.0
 *
 * A model that is trained on one side on a single batch that depends on seeds only. Used by the models' tests and the benchmark.
 */
#ifndef COXSWAIN_TESTS_GPU_LEARNER_H
#define COXSWAIN_TESTS_GPU_LEARNER_H

#include "tests/gpu/check.h"
#include "worker/model/graph.h"
#include "worker/optimizer/optimizer.h"
#include "worker/optimizer/training_state.h"

struct work {
    const char *name;
    struct model_spec model;
    struct optimizer_spec optimizer;
    int64_t batch;
    int64_t logit_rows; /* graph_options */
    bool recompute;     /* graph_options */
    enum precision precision;
    bool cut;      /* also run in two parts, which exchange values and gradients */
    bool finished; /* cuBLASLt computes its GELUs if it is enabled */
    /* its loss is the mean of so few examples that a different rounding of one bfloat16 logit shows in it */
    bool coarse;
    bool small; /* also for an emulated GPU */
    /* step of the finite differences; 0: none, because the model is too large or not precise enough */
    float difference;
};

/* One model on one side. */
struct learner {
    const struct work *work;
    struct side *side;
    struct graph *graph;
    struct training_state state;
    void *inputs, *targets, *gradients, *sums;
};

void learner_open(struct learner *learner, const struct work *work, struct side *side);
void learner_close(struct learner *learner);

/* Returns the next step's pass over the batch; its gradients are of the mean loss. */
struct graph_pass learner_pass(struct learner *learner);
/* Returns the mean loss of the last pass. */
double learner_mean_loss(const struct learner *learner);
/* Runs a pass and waits. */
void learner_backward(struct learner *learner, const struct graph_pass *pass);
/* Evaluates the model. Returns the mean loss. */
double learner_loss(struct learner *learner);
/* Host memory, free() it. */
float *learner_gradients(struct learner *learner);
/* Runs steps without waiting in between. Returns the last one's mean loss. */
double learner_train(struct learner *learner, int steps);

#endif
