/* SPDX-License-Identifier: Apache-2.0
 *
 * Restores the state that a run starts from if no live replica holds it: from the newest whole
 * checkpoint, from the weights of `init`, or from fresh parameters.
 */
#ifndef COXSWAIN_TRAIN_RESTORING_H
#define COXSWAIN_TRAIN_RESTORING_H

#include "worker/train/trainer.h"

/* Fills the trainer's state. For strategy_options.restore. */
int restoring_state(void *trainer, struct error *error);
/* Opens the newest whole checkpoint if the job has a store. If there is none, *ret_found is false;
 * that is an error if the job requires one. The caller releases the image if one is found. */
int restoring_open_checkpoint(struct trainer *trainer, bool *ret_found, struct checkpoint_image *ret_image,
                              struct error *error);
/* Fills the part of the state that this rank holds. The rank that `chooses` selects the checkpoint
 * and stores its name, or "", in `base`; the others read the one that `base` names. For
 * strategy_options.restore_part. */
int restoring_part(void *trainer, bool chooses, char base[STRATEGY_BASE_MAX], struct error *error);

#endif
