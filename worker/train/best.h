/* SPDX-License-Identifier: Apache-2.0
 *
 * The weights of the evaluation with the lowest validation loss (keepBest): one
 * file beside the checkpoints, replaced whole whenever a better one comes, never
 * retired. Its metadata tells job, step and loss, so that a restarted chief goes
 * on from there. Copied at once, they are written in the background; where yet
 * better ones come meanwhile, these are next, and nothing waits. What was not on
 * the disk yet when a chief is lost is lost with it.
 */
#ifndef COXSWAIN_TRAIN_BEST_H
#define COXSWAIN_TRAIN_BEST_H

#include "worker/train/trainer.h"

struct best;

/* Once the chief may save: what an earlier chief of this job has kept. */
void best_begin(struct trainer *trainer);

/* After an evaluation of the present step, in all ranks; the chief decides and writes. A file that cannot be written is a
 * warning; errors are those of the crew. */
int best_consider(struct trainer *trainer, double loss, struct error *error);
/* Until all is on the disk, or told to have failed. */
void best_wait(struct trainer *trainer);
/* The same, but no longer than that; whether it is so. */
bool best_wait_for(struct trainer *trainer, int64_t ms);
/* Waits as well. NULL is fine. */
void best_free(struct best *best);

/* The final export, of the last weights or the best, in the chief. `model`: the last ones. */
struct whole_model;
int best_export(struct trainer *trainer, const struct whole_model *model, struct error *error);

#endif
