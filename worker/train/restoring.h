/* SPDX-License-Identifier: Apache-2.0
 *
 * The state that a run starts from, where no live replica holds it: the newest whole checkpoint, the weights of `init`, or
 * fresh ones.
 */
#ifndef COXSWAIN_TRAIN_RESTORING_H
#define COXSWAIN_TRAIN_RESTORING_H

#include "worker/train/trainer.h"

/* Fills the trainer's state; a strategy_options.restore. */
int restoring_state(void *trainer, struct error *error);
/* The newest whole checkpoint, if the job has a store and one is there or required; release the image when found. */
int restoring_open_checkpoint(struct trainer *trainer, bool *ret_found, struct checkpoint_image *ret_image,
                              struct error *error);
/* Fills the part of the state that this rank holds; a strategy_options.restore_part. */
int restoring_part(void *trainer, bool chooses, char base[STRATEGY_BASE_MAX], struct error *error);

#endif
