/* SPDX-License-Identifier: Apache-2.0
 *
 * Lets the job of a trial of a population (algorithm PBT) go on from the checkpoint of another trial. The operator builds trials with it, and
 * `cox` the job that goes on from the best one.
 */
#ifndef COXSWAIN_JOB_SWEEP_DESCENT_H
#define COXSWAIN_JOB_SWEEP_DESCENT_H

#include "common/json.h"

/* Changes a TrainingJob's spec so that the job begins with the newest checkpoint of the job `parent`, whose folder has its name, and ends
 * after as many steps or epochs as so many generations have. */
void sweep_descent_put(struct json *spec, const char *parent, int64_t generations);

#endif
