/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the loss scale (device/loss_scale.h) as a part of the training state, so that checkpoints
 * contain it. Strategies update it after each step. Only float16 uses it. A step whose gradient is
 * not finite is skipped: the run's step number and its position in the data advance, parameters and
 * optimizer slots keep their values, and the optimizer does not count the step.
 */
#ifndef COXSWAIN_OPTIMIZER_LOSS_SCALING_H
#define COXSWAIN_OPTIMIZER_LOSS_SCALING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/job/job_document.h"

/* Part of the bytes of the training state. All zeros at the start of a run. */
struct loss_scaling {
    int64_t scale; /* a power of two; 0: no step has been scaled so far */
    int64_t good_steps;
    int64_t skipped_steps; /* of the whole run, including parts in another precision */
};

/* Returns the loss scale of the next step; 1 if losses are not scaled. */
double loss_scaling_factor(const struct loss_scaling *scaling, enum precision precision);
/* Returns the loss scale as the operation begin_step takes it (device/operations.h): 0 if losses are not scaled. */
float loss_scaling_for_begin_step(const struct loss_scaling *scaling, enum precision precision);
/* Updates the scale after a step that was applied or skipped. Does nothing unless `precision` is
 * float16. */
void loss_scaling_follow(struct loss_scaling *scaling, enum precision precision, bool skipped);

#endif
