/* SPDX-License-Identifier: Apache-2.0
 *
 * One process of a job for tests of strategies: its model on its devices, data and state, and its place in a crew. Opened in the
 * order of the functions; the test makes the strategy, of learner_options and what it tries. All seeds are 5, all threads one.
 */
#ifndef COXSWAIN_UNIT_WORKER_STRATEGY_LEARNER_H
#define COXSWAIN_UNIT_WORKER_STRATEGY_LEARNER_H

#include "common/job/job_document.h"
#include "worker/coordination/member.h"
#include "worker/data/dataset.h"
#include "worker/data/sampler.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/strategy.h"

#define LEARNER_DEVICES_MAX 10
#define LEARNER_JOB_UID "uid"
/* A small job of one process, for tests to which the job does not matter. */
#define LEARNER_SMALL_JOB                                                                                              \
    "{\"name\":\"test\",\"strategy\":{\"type\":\"OneDevice\"},\"model\":{\"preset\":\"mlp\",\"width\":8},"             \
    "\"data\":{\"format\":\"Synthetic\",\"examples\":90},\"training\":{\"steps\":7,\"batchSize\":24,\"seed\":5,"       \
    "\"optimizer\":{\"type\":\"SGD\",\"learningRate\":\"0.02\"}}}"

/* Begins as zeros. */
struct learner {
    struct job_document job;
    struct strategy_device devices[LEARNER_DEVICES_MAX];
    unsigned device_count;
    int64_t logit_rows;  /* graph_options; set before the model is opened, like the next */
    bool is_far;         /* the devices say that their memory is their own, as GPUs do */
    struct graph *graph; /* of the first device */
    struct dataset *dataset;
    struct sampler sampler;
    struct training_state state;
    struct endpoint *endpoint;
    struct member *member;
    struct strategy *strategy;
};

/* `text` is JSON. */
int learner_open_job(struct learner *learner, const char *text, struct error *error);
/* Logical devices of the CPU, a graph on each; with `layout_only` one graph that cannot be run, for strategies that make their
 * own. Then the data. */
int learner_open_model(struct learner *learner, unsigned devices, int64_t max_examples, bool layout_only,
                       struct error *error);
int learner_open_state(struct learner *learner, struct error *error);
/* `options` without job, address and port: it listens at its seat's host. */
int learner_open_member(struct learner *learner, struct member_options options, struct error *error);
/* Returns options with everything that was opened. */
struct strategy_options learner_options(struct learner *learner, enum strategy_type type);
/* The strategy too; however far it was opened. */
void learner_close(struct learner *learner);

#endif
