/* SPDX-License-Identifier: Apache-2.0
 *
 * A model that is trained on one side, on one batch of numbers that depend on
 * seeds alone: of the models' tests and of the benchmark.
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
    bool recompute;     /* likewise */
    enum precision precision;
    bool cut;      /* also run as two parts, which give each other what crosses */
    bool finished; /* cuBLASLt takes its GELUs where it is asked to */
    bool coarse;   /* its loss is the mean of so few that one logit of bfloat16, rounded up and not down, shows in it */
    bool small;    /* enough for a GPU that is emulated */
    float difference; /* step of the finite differences; 0: none, the model is too large or too coarse for them */
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

/* A pass over the batch, of the step that comes next; its gradients are of the mean loss. */
struct graph_pass learner_pass(struct learner *learner);
/* Of the last pass. */
double learner_mean_loss(const struct learner *learner);
/* Runs a pass and waits. */
void learner_backward(struct learner *learner, const struct graph_pass *pass);
/* Evaluates; the mean loss. */
double learner_loss(struct learner *learner);
/* Host memory, free() it. */
float *learner_gradients(struct learner *learner);
/* Steps without waiting between them; the last one's mean loss. */
double learner_train(struct learner *learner, int steps);

#endif
