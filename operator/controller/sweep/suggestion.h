/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the values of the parameters of each trial: a pure function of the sweep's spec and the trial's number, so that an
 * operator that was restarted chooses the same ones. With TPE it also depends on the history in the sweep's status: on the values
 * and results of other trials. As results are added to it, the values of a trial are recorded there before the trial is created
 * (suggestion_record), and are read from there ever after.
 */
#ifndef COXSWAIN_CONTROLLER_SUGGESTION_H
#define COXSWAIN_CONTROLLER_SUGGESTION_H

#include "common/job/training_sweep.h"

/* Returns how many trials the sweep has in all. */
int64_t suggestion_count(const struct training_sweep *sweep);

/* Returns the value of a parameter in a trial: a number, a string or a boolean. Numbers of a range are rounded to six digits,
 * if that leaves them in the range. What is recorded of the trial is not drawn again. Free with json_free. */
struct json *suggestion_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial);

/* Returns the values of all parameters in a trial, for trial_record.values. Free with free(). */
char *suggestion_record(const struct training_sweep *sweep, int64_t trial);

#endif
