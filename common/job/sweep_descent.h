/* SPDX-License-Identifier: Apache-2.0
 *
 * Lets the job of a trial of a population (algorithm PBT) go on from the checkpoint of another trial. The operator builds trials with it, and
 * `cox` the job that goes on from the best one.
 */
#ifndef COXSWAIN_JOB_SWEEP_DESCENT_H
#define COXSWAIN_JOB_SWEEP_DESCENT_H

#include "common/job/training_sweep.h"

/* Returns the folder of a trial's checkpoints in their storage: the trial's name and the beginning of the sweep's uid, so that a sweep that
 * is deleted and created again does not take the checkpoints of the one before for its own. Free with free(). */
char *sweep_descent_folder(const struct training_sweep *sweep, const char *trial);
/* Lets the job save its checkpoints in that folder, if it saves any. */
void sweep_descent_put_folder(struct json *spec, const char *folder);
/* Changes a TrainingJob's spec so that the job begins with the newest checkpoint in the folder `parent`, and ends after as many steps or epochs
 * as so many generations have. */
void sweep_descent_put(struct json *spec, const char *parent, int64_t generations);

#endif
