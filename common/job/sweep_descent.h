/* SPDX-License-Identifier: Apache-2.0
 *
 * Lets the job of a trial of a population (algorithm PBT) go on from the checkpoint of another trial. The operator uses it to build trials,
 * and `cox` to build the job that goes on from the best trial.
 */
#ifndef COXSWAIN_JOB_SWEEP_DESCENT_H
#define COXSWAIN_JOB_SWEEP_DESCENT_H

#include "common/job/training_sweep.h"

/* Returns the folder of a trial's checkpoints in their storage: the trial's name and the beginning of the sweep's uid, so that a sweep that
 * is deleted and created again does not take the checkpoints of the one before for its own. Free with free(). */
char *sweep_descent_folder(const struct training_sweep *sweep, const char *trial);
/* Sets the folder in which the job saves its checkpoints. Does nothing if the job saves none. */
void sweep_descent_put_folder(struct json *spec, const char *folder);
/* Changes a TrainingJob's spec so that the job begins with the newest checkpoint in the folder `parent`. Its steps or epochs, which are
 * those of one generation, become those of all `generations`, since the checkpoint's count goes on. */
void sweep_descent_put(struct json *spec, const char *parent, int64_t generations);

#endif
