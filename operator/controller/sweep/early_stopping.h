/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which trials of a sweep are stopped before their end, because others were better after as
 * many steps. Trials are compared at rungs: numbers of steps, the first of which is minSteps, and
 * each of which is a multiple of the one before. The value of a trial at a rung is the first one
 * that the operator sees which was measured at the rung or after it, and before the next rung. It
 * is recorded in the trial's result in the status, and judged once, when it is recorded:
 *   Median  Golovin et al. 2017, "Google Vizier", at rungs instead of each report: the trial is
 *           stopped if its best value so far is worse than the median of the values that the other
 *           trials had at the rung; none is stopped before startupTrials are over. Rungs double.
 *   ASHA    Li et al. 2020, "A system for massively parallel hyperparameter tuning", the form that
 *           stops instead of promoting: of n trials that have reached the rung the best
 *           n / reductionFactor go on, rounded down; while that is 0, all go on. With action Pause the
 *           form that promotes them, which promotion.h decides.
 *   Hyperband  ASHA in each bracket of trials (sweep_bracket.h): a trial of bracket b is judged from rung b on, against the trials
 *           of its bracket alone.
 *
 * All functions are pure: a decision follows from the spec and the results in the status.
 */
#ifndef COXSWAIN_CONTROLLER_EARLY_STOPPING_H
#define COXSWAIN_CONTROLLER_EARLY_STOPPING_H

#include "common/job/training_sweep.h"

/* Returns the number of the highest rung that is reached after so many steps; -1: none, or the sweep has no early stopping. */
int early_stopping_rung(const struct training_sweep *sweep, int64_t steps);
/* Returns the number of steps at which a rung is; INT64_MAX: there is no such rung. */
int64_t early_stopping_rung_steps(const struct training_sweep *sweep, int rung);
/* Returns the value that a trial had at a rung; NAN: it has none. */
double early_stopping_value(const struct trial_record *result, int rung);
/* Returns the value that a trial had at a rung, negated if higher values are better, so that the lowest loss is the best; NAN: it has
 * none. The loss of a trial that diverged is infinite at the next rung that it would have come to. */
double early_stopping_loss(const struct training_sweep *sweep, const struct trial_record *results, int64_t trial,
                           int rung);
/* Returns the highest rung that a trial has a value for; -1: none. */
int early_stopping_top_rung(const struct trial_record *result);
/* Returns the bracket of a trial; 0 where there are none. */
int early_stopping_bracket(const struct training_sweep *sweep, int64_t trial);
/* Records a value that a trial reports. Returns the rung that it now has a value for; -1: none, or it had one. The new text lies
 * in the arena. */
int early_stopping_record(const struct training_sweep *sweep, int64_t steps, const char *value,
                          struct trial_record *result, struct arena *arena);
/* Returns the reason for which a trial does not go on when `better` of the `reached` trials that it was compared with are better, and
 * only `places` go on; in the arena. */
const char *early_stopping_reason(const struct training_sweep *sweep, int64_t trial, int64_t better, int64_t reached,
                                  int64_t places, struct arena *arena);
/* Returns why a trial has to be stopped that has just got its value for the rung, in the arena; NULL: it goes on. */
const char *early_stopping_judge(const struct training_sweep *sweep, const struct trial_record *results, int64_t count,
                                 int64_t trial, int rung, struct arena *arena);

#endif
