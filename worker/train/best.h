/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the weights of the evaluation with the lowest validation loss (spec field
 * checkpoint.keepBest) in one file beside the checkpoints, and writes the run's final export. The
 * training loop and the chief of a parameter-server crew call it after each evaluation and at the
 * end.
 *
 * A better evaluation replaces the file as a whole; the file is never deleted with old checkpoints.
 * Its metadata holds job, step, loss and accuracy, from which a restarted chief continues the
 * comparison.
 *
 * The weights are copied at once and written by a background thread, so that training never waits
 * for the disk. At most one set of weights waits to be written; better weights replace it. Weights
 * that are not yet on the disk when the chief dies are lost.
 */
#ifndef COXSWAIN_TRAIN_BEST_H
#define COXSWAIN_TRAIN_BEST_H

#include "worker/train/evaluation.h"
#include "worker/train/trainer.h"

struct best;
struct exported;
struct gathered_model;

/* Starts to keep the best weights, if the job asks for it and this process is a chief that has written its
 * incarnation record (saving_begin). Reads the lowest loss so far from the file that an earlier chief of this job has left, or the chief of
 * another job from whose checkpoint this one continues (trainer->state.progress is that checkpoint's). */
void best_begin(struct trainer *trainer);

/* Keeps the present weights if their loss is the lowest so far, and reports that evaluation as the best (report_best). Every rank calls
 * this after an evaluation; the chief decides and writes. A file that cannot be written is only a warning; the errors returned are those
 * of the crew's communication. */
int best_consider(struct trainer *trainer, const struct evaluation_metrics *metrics, struct error *error);
/* Waits until the background thread has written everything or reported its failure. */
void best_wait(struct trainer *trainer);
/* Waits for at most `ms`. Returns whether everything was written or reported as failed by then. */
bool best_wait_for(struct trainer *trainer, int64_t ms);
/* Waits like best_wait, then frees. NULL is allowed. */
void best_free(struct best *best);

/* Writes the final export in the chief: the best weights if the job asks for these, else `model`,
 * which holds the last ones. `ret_exported`: the file's size and checksum. */
int best_export(struct trainer *trainer, const struct gathered_model *model, struct exported *ret_exported,
                struct error *error);

#endif
