/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the TrainingJob of a trial: the sweep's template with the values that suggestion.h chose
 * for the trial's parameters, with PBT the checkpoint that it goes on from (population.h), and with
 * action Pause the step at which it waits (promotion.h). The backoffLimit of a script of another framework is 0 if the template has none. The
 * plan of a sweep builds each trial to find out whether its values make a valid job, before it
 * promises the trial; the executor builds it again to create it. Both get the same job, because its
 * name and values follow from the sweep, its status included, and the trial's number.
 */
#ifndef COXSWAIN_CONTROLLER_TRIAL_BUILD_H
#define COXSWAIN_CONTROLLER_TRIAL_BUILD_H

#include "common/job/training_sweep.h"

/* Returns the trial's name, <sweep>-<number>; free with free(). */
char *trial_name(const struct training_sweep *sweep, int64_t trial);
/* Returns the number in a name of that form, otherwise -1. */
int64_t trial_number(const struct training_sweep *sweep, const char *name);

/* Builds the trial's TrainingJob. ERROR_INVALID: a parameter's path leads nowhere in the template, or the job's spec is invalid;
 * the message names the field. Free `ret_object` with json_free. */
int trial_build(const struct training_sweep *sweep, int64_t trial, struct json **ret_object, struct error *error);

/* Returns the merge patch that suspends the trial's job or resumes it; free with json_free. With action Pause, a job that is suspended
 * loses the step at which it waits, so that a person who resumes it gets one that trains to its end; one that the sweep resumes waits at
 * the next rung. */
struct json *trial_suspend_patch(const struct training_sweep *sweep, int64_t trial, bool suspend);

#endif
