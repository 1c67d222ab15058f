/* SPDX-License-Identifier: Apache-2.0
 *
 * A trainer that is asked to leave (stop.h) does so at the next boundary
 * (train/loop.c). Here: that it is told of the wish, also where it waits for its
 * crew; and that a step, or an evaluation, which does not end within half of
 * the grace period (COXSWAIN_GRACE_SECONDS) is abandoned, the boundary before it
 * saved and the process ended with 143, so that nothing but that step is lost. The
 * wish is voted for as a step begins: one that comes in a step is heeded after the
 * next. The half is therefore for what two steps take; of a longer one the second
 * is abandoned.
 */
#ifndef COXSWAIN_TRAIN_LEAVING_H
#define COXSWAIN_TRAIN_LEAVING_H

#include "worker/train/trainer.h"

/* Whether a step of this trainer can be abandoned, and something is won by it: its process alone holds all of the state and
 * saves it, or the others of its crew do. */
bool leaving_can_abandon(const struct trainer *trainer);

int leaving_open(struct trainer *trainer, struct error *error);
void leaving_close(struct trainer *trainer);

#endif
