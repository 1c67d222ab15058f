/* SPDX-License-Identifier: Apache-2.0
 *
 * The scale of the loss (device/loss_scale.h) as a part of the training state: of
 * float16 alone. A step that is skipped moves the run on by its examples and its
 * number; parameters and the optimizer's slots stay, and the optimizer does not
 * count it.
 */
#ifndef COXSWAIN_OPTIMIZER_LOSS_SCALING_H
#define COXSWAIN_OPTIMIZER_LOSS_SCALING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/job/job_document.h"

/* Part of the state's bytes. All zeros at the start of a run. */
struct loss_scaling {
    int64_t scale; /* a power of two; 0: nothing has been scaled so far */
    int64_t good_steps;
    int64_t skipped_steps; /* of the whole run, whatever its precision is now */
};

/* Of the step that comes next; 1 where losses are not scaled. */
double loss_scaling_factor(const struct loss_scaling *scaling, enum precision precision);
/* Likewise, as begin_step wants it (device/operations.h): 0 where they are not. */
float loss_scaling_told(const struct loss_scaling *scaling, enum precision precision);
/* After a step that was taken, or skipped. */
void loss_scaling_follow(struct loss_scaling *scaling, enum precision precision, bool skipped);

#endif
