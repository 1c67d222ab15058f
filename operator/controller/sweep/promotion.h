/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which trials of a sweep pause at a rung, and which paused ones go on: asynchronous
 * successive halving, the first form of ASHA in Li et al. 2020, "A system for massively parallel
 * hyperparameter tuning". It replaces early_stopping_judge when earlyStopping.action is Pause. Rungs
 * and the values at them are those of early_stopping.h.
 *
 * Of n trials that have come to a rung the best n / reductionFactor, rounded down, may go on from
 * it; of equal values the one of the trial with the lower number is better. A trial that gets its
 * value goes on at once if it is one of them, otherwise it pauses. Paused trials wait at the last
 * rung that they have a value for. A trial without a value at a rung, because none was seen in time,
 * counts there with its next value. As others come to that rung n grows, so that more of those that
 * wait there may go on.
 *
 * Trials of our own worker come to a rung exactly: the job of such a trial has the rung's step in an annotation, at which its workers save
 * and wait (ANNOTATION_PAUSE_STEP). So it pauses at each rung, and is promoted as soon as its pods are gone if it is among the best.
 *
 * With Hyperband only trials of the same bracket are compared, and a trial does not pause before the first rung of its bracket.
 *
 * All functions are pure: a decision follows from the spec and the results in the status.
 */
#ifndef COXSWAIN_CONTROLLER_PROMOTION_H
#define COXSWAIN_CONTROLLER_PROMOTION_H

#include "common/job/training_sweep.h"

/* Returns the step at which the workers of a trial wait next: that of the rung after the last one that it has a value for. INT64_MAX: it
 * has come to every rung. */
int64_t promotion_pause_step(const struct training_sweep *sweep, int64_t trial);
/* Returns why a trial has to pause that has just got its value for the rung, in the arena; NULL: it goes on. */
const char *promotion_judge(const struct training_sweep *sweep, const struct trial_record *results, int64_t count,
                            int64_t trial, int rung, struct arena *arena);
/* Returns the paused trial that goes on next, the best one at the highest rung from which one may go on; -1: none may. */
int64_t promotion_next(const struct training_sweep *sweep, const struct trial_record *results, int64_t count);
/* Returns the best of the trials that are paused at the highest rung, whether it may go on or not; -1: none is paused. It is the one to
 * bring to its end when otherwise none would come there. */
int64_t promotion_last(const struct training_sweep *sweep, const struct trial_record *results, int64_t count);

#endif
