/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of a run, worked out once before it: batch, shards, steps. A pure
 * function of the job document and the number of examples.
 *
 * stepsPerEpoch is ceil(examples / global batch) unless given; a given one sets
 * how many steps an epoch counts for the run's length and for evaluations, while
 * the data is still visited in its own order, each example once a pass.
 */
#ifndef COXSWAIN_TRAIN_STEP_PLAN_H
#define COXSWAIN_TRAIN_STEP_PLAN_H

#include <stdint.h>

#include "common/error.h"
#include "common/job/job_document.h"

struct step_plan {
    int64_t global_batch;
    int64_t replicas; /* of the model */
    int64_t logical_shards;
    int64_t shares;             /* ParameterServer: of a batch; the devices of one worker compute one together */
    int64_t max_shard_examples; /* of the largest logical shard, whatever number of shards the chief settles on */
    int64_t steps_per_epoch, total_steps;
    int64_t evaluate_every;      /* steps */
    double learning_rate_factor; /* 1, or the number of replicas under scaleLearningRate: Linear */
};

/* Batch and shards, which need no data; the crew takes the chief's number of shards. `recorded_shards`: of the checkpoint to go on from, 0: none; its shards are kept so
 * that the bits are, unless the crew has grown beyond them. */
int step_plan_batches(const struct job_document *job, unsigned crew_size, int64_t recorded_shards,
                      struct step_plan *ret_plan, struct error *error);

/* Completes it with the number of training examples. */
int step_plan_steps(const struct job_document *job, int64_t examples, struct step_plan *plan, struct error *error);

#endif
