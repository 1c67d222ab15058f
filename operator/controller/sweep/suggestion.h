/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the values of the parameters of each trial of a sweep, by grid, at random, by TPE
 * (tpe.h) or for a population (PBT, population.h). A choice is a pure function of the sweep and the
 * trial's number, so that a restarted operator chooses the same values. With TPE and PBT the choice
 * also depends on the values and results of other trials, which are in the sweep's status and change
 * while trials end. So sweep_plan.c records the values of a trial in the status before the trial is
 * created (suggestion_record), and suggestion_value returns the recorded values from then on.
 *
 * With Random and TPE a trial does not get the values of an earlier one, whatever became of that: it would come to the same result. Values
 * that an earlier trial had are drawn again at random, up to 64 times, and then enumerated. Only if there are more than SWEEP_TRIALS_MAX
 * combinations, and all draws were had before, a trial repeats another one.
 */
#ifndef COXSWAIN_CONTROLLER_SUGGESTION_H
#define COXSWAIN_CONTROLLER_SUGGESTION_H

#include "common/job/training_sweep.h"

/* Returns the value of a parameter in a trial: a number, a string or a boolean. Numbers of a range are rounded to six digits, if that
 * leaves them in the range. NULL: the parameter is not tried in this trial, as its `when` says. A recorded value is returned as it is. Free
 * with json_free. */
struct json *suggestion_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial);

/* Returns the values of all parameters in a trial, for trial_record.values. Free with free(). */
char *suggestion_record(const struct training_sweep *sweep, int64_t trial);
/* Returns whether these values of a trial have to be recorded: with TPE and PBT always, with Random only if they were drawn again, since
 * the status has no room for those of 10,000 trials. */
bool suggestion_is_to_record(const struct training_sweep *sweep, int64_t trial, const char *record);

#endif
