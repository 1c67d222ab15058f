/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the numbers of a run before it begins: global batch, logical shards, steps. (Logical
 * shards are the fixed parts of a batch whose gradients are computed separately and then added.)
 * The results depend only on the arguments, such as the job document and the number of examples.
 *
 * stepsPerEpoch is ceil(examples / global batch) unless given. A given value sets how many steps
 * count as an epoch for the run's length and for evaluations; the data is still visited in its own
 * order, each example once per pass. In PeerToPeer, where the step number is the number of all
 * examples divided by the batch, E epochs end after as many steps as hold E times the examples.
 *
 * A run that counts epochs may be resumed with another batch. Its length then follows from the
 * place in the data, (epoch, examples consumed): step_plan_go_on.
 */
#ifndef COXSWAIN_TRAIN_STEP_PLAN_H
#define COXSWAIN_TRAIN_STEP_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/job/job_document.h"

struct step_plan {
    int64_t global_batch;
    int64_t replicas; /* copies of the model */
    int64_t logical_shards;
    int64_t shares;             /* ParameterServer: of a batch; all devices of one worker compute one share together */
    int64_t max_shard_examples; /* upper bound of a logical shard for any number of shards that the chief may choose */
    int64_t examples, epochs;   /* of the data, and passes over it; epochs 0: the run's length is given in steps */
    int64_t steps_per_epoch, total_steps;
    int64_t shift;          /* added to a step's number: what the number would be if all steps had had this batch */
    int64_t evaluate_every; /* steps between two evaluations */
    bool
        evaluates_epochs; /* evaluate_every is one epoch, and evaluations stay at the ends of epochs after a new batch size */
    double learning_rate_factor; /* 1, or the number of replicas (scaleLearningRate: Linear) */
};

/* Computes batch and shards, which do not depend on the data; the crew then uses the chief's number
 * of shards. `recorded_shards` is the number in the checkpoint to resume from, 0 without one. It is
 * kept so that results stay bitwise equal, unless the crew has grown beyond it. */
int step_plan_batches(const struct job_document *job, unsigned crew_size, int64_t recorded_shards,
                      struct step_plan *ret_plan, struct error *error);

/* Computes the remaining numbers from the number of training examples. */
int step_plan_steps(const struct job_document *job, int64_t examples, struct step_plan *plan, struct error *error);

/* Sets total_steps and shift for a run that continues after `step`, which ended at this place in
 * the data. Gives the same result at every place of a run whose batch does not change. */
void step_plan_go_on(struct step_plan *plan, int64_t step, int64_t data_epoch, int64_t consumed);
/* Returns whether the run is complete at this place. */
bool step_plan_is_over(const struct step_plan *plan, int64_t step, int64_t data_epoch, int64_t consumed);

/* Returns the examples of the largest logical shard. */
int64_t step_plan_largest_shard(const struct step_plan *plan);
/* A call always computes `call` examples; the last one of a shard is filled up. Returns how much of what a step computes is such filler, in
 * per cent. */
int step_plan_filler(const struct step_plan *plan, int64_t call);
/* Returns the smallest size of calls with which the largest shard takes as many calls as with `call`. */
int64_t step_plan_fitting_call(const struct step_plan *plan, int64_t call);

/* Return the place of `step` in the learning rate schedule, and the length of the schedule, counted
 * as if all steps had this batch. */
int64_t step_plan_place(const struct step_plan *plan, int64_t step);
int64_t step_plan_schedule_steps(const struct step_plan *plan);
/* Returns whether an evaluation is due after the steps from `before` to `step`. */
bool step_plan_evaluates(const struct step_plan *plan, int64_t before, int64_t step);

#endif
