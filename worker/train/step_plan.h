/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of a run, worked out once before it: batch, shards, steps. A pure
 * function of the job document and the number of examples.
 *
 * stepsPerEpoch is ceil(examples / global batch) unless given; a given one sets
 * how many steps an epoch counts for the run's length and for evaluations, while
 * the data is still visited in its own order, each example once a pass. In
 * PeerToPeer, whose steps are all examples in batches, E epochs are over after as
 * many of those as hold E times the examples.
 *
 * A run that counts epochs may go on from steps of another batch. Then its length
 * follows from the place in the data, (epoch, examples consumed): step_plan_go_on.
 */
#ifndef COXSWAIN_TRAIN_STEP_PLAN_H
#define COXSWAIN_TRAIN_STEP_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/job/job_document.h"

struct step_plan {
    int64_t global_batch;
    int64_t replicas; /* of the model */
    int64_t logical_shards;
    int64_t shares;             /* ParameterServer: of a batch; the devices of one worker compute one together */
    int64_t max_shard_examples; /* of the largest logical shard, whatever number of shards the chief settles on */
    int64_t examples, epochs; /* of the data, and passes over it; epochs 0: the run counts steps, whatever the batch */
    int64_t steps_per_epoch, total_steps;
    int64_t shift;               /* added to a step's number it is the one that it had, were all of this batch */
    int64_t evaluate_every;      /* steps */
    bool evaluates_epochs;       /* … that are an epoch of this batch */
    double learning_rate_factor; /* 1, or the number of replicas under scaleLearningRate: Linear */
};

/* Batch and shards, which need no data; the crew takes the chief's number of shards. `recorded_shards`: of the checkpoint to go on
 * from, 0: none; its shards are kept so that the bits are, unless the crew has grown beyond them. */
int step_plan_batches(const struct job_document *job, unsigned crew_size, int64_t recorded_shards,
                      struct step_plan *ret_plan, struct error *error);

/* Completes it with the number of training examples. */
int step_plan_steps(const struct job_document *job, int64_t examples, struct step_plan *plan, struct error *error);

/* The run goes on after this step, which ended there in the data: sets total_steps and shift. The same for every place of a run whose
 * batch does not change. */
void step_plan_go_on(struct step_plan *plan, int64_t step, int64_t data_epoch, int64_t consumed);
/* Whether nothing is left to do there. */
bool step_plan_is_over(const struct step_plan *plan, int64_t step, int64_t data_epoch, int64_t consumed);

/* Of `schedule_steps` steps of this batch, from beginning to end: which one the schedule takes `step` for. */
int64_t step_plan_place(const struct step_plan *plan, int64_t step);
int64_t step_plan_schedule_steps(const struct step_plan *plan);
/* Whether an evaluation is due after the steps from `before` on to `step`. */
bool step_plan_evaluates(const struct step_plan *plan, int64_t before, int64_t step);

#endif
