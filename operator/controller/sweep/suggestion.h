/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the values of the parameters of each trial: a pure function of the sweep's spec and the trial's number, so that an
 * operator that was restarted chooses the same ones.
 */
#ifndef COXSWAIN_CONTROLLER_SUGGESTION_H
#define COXSWAIN_CONTROLLER_SUGGESTION_H

#include "common/job/training_sweep.h"

/* Returns how many trials the sweep has in all. */
int64_t suggestion_count(const struct training_sweep *sweep);

/* Returns the value of a parameter in a trial: a number, a string or a boolean. Numbers of a range are rounded to six digits,
 * if that leaves them in the range. Free with json_free. */
struct json *suggestion_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial);

#endif
