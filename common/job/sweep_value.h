/* SPDX-License-Identifier: Apache-2.0
 *
 * Determines the values that a trial of a sweep has for the sweep's parameters. With Grid and Random they follow from the spec and the
 * trial's number. With TPE the operator draws them from the results of other trials and records them in the sweep's status; with Random
 * it records the values of a trial that it drew again because an earlier trial had the same. The operator builds trials with these
 * functions, and `cox` shows trials whose jobs are gone.
 */
#ifndef COXSWAIN_JOB_SWEEP_VALUE_H
#define COXSWAIN_JOB_SWEEP_VALUE_H

#include "common/job/training_sweep.h"

/* Returns how many points the grid of the parameters has, at most SWEEP_TRIALS_MAX + 1; 0: a parameter has infinitely many values.
 * Points that differ only in parameters that do not apply there (sweep_applies) count as one point. */
int64_t sweep_point_count(const struct training_sweep *sweep);
/* Returns how many trials the sweep can have: every point of the grid once. With PBT, and where the points are too many to count, it is
 * SWEEP_TRIALS_MAX. */
int64_t sweep_trial_limit(const struct training_sweep *sweep);
/* Returns how many trials the sweep has in all: maxTrials, or fewer if that is more than it can have. */
int64_t sweep_trial_count(const struct training_sweep *sweep);
/* Returns whether a sweep other than a Grid has started all trials that it can have, and maxTrials asks for more. */
bool sweep_is_exhausted(const struct training_sweep *sweep);

/* Returns the number of the earlier parameter that the `when` of a parameter names; -1: it has no `when`, or one that is not sound. */
int sweep_condition_of(const struct training_sweep *sweep, unsigned parameter);
/* Returns whether a parameter is tried in a trial, by the `value` that the parameter named in its `when` has there; NULL: that parameter is
 * itself not tried there. */
bool sweep_applies(const struct training_sweep *sweep, unsigned parameter, const struct json *value);

/* Returns a number that is uniform in [0, 1), with 53 bits. `number` counts the draws for the same value. */
double sweep_draw(const struct training_sweep *sweep, unsigned parameter, int64_t trial, uint64_t number);
/* Returns the value of a parameter in a trial: a number, a string or a boolean. With Grid it is that of the trial's point; NULL: the
 * parameter is not tried there. With any other algorithm it is drawn at random, even if the parameter is not tried in this trial. Numbers
 * of a range are rounded to six digits, if that leaves them in the range. Free with json_free. */
struct json *sweep_drawn_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial);
/* Returns the value of the draw at random of that number for the same trial. sweep_drawn_value has number 0. */
struct json *sweep_random_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial, uint64_t number);
/* Returns the value at a point of the grid, counted from 0; NULL: the parameter is not tried there. */
struct json *sweep_point_value(const struct training_sweep *sweep, unsigned parameter, int64_t number);

/* Returns whether the values of all trials are recorded in the status: they follow from results, not from the spec alone. */
bool sweep_values_are_recorded(const struct training_sweep *sweep);
/* Returns whether the status has the values of this trial. */
bool sweep_has_record(const struct training_sweep *sweep, int64_t trial);
/* Gets the number that the status has recorded for a trial's parameter: the value or, for a parameter with a list `values`, the value's
 * position in that list. Returns false if none is recorded. */
bool sweep_recorded_number(const struct training_sweep *sweep, unsigned parameter, int64_t trial, double *ret_number);
/* Converts a recorded number back to the parameter's value. If the number is not possible, because a person has edited the status, returns
 * the nearest possible value. */
struct json *sweep_value_of_number(const struct sweep_parameter *parameter, double number);
/* Returns the distance between the values of a parameter with `integer`, and its highest value. */
int64_t sweep_integer_step(const struct sweep_parameter *parameter);
int64_t sweep_integer_last(const struct sweep_parameter *parameter);
/* Returns the logarithm at the begin or the `end` of a range of integers with scale Log. The lowest and the highest value have as much room
 * there as if their neighbours outside the range were values, too. */
double sweep_integer_log(const struct sweep_parameter *parameter, bool end);
/* Returns the number nearest to `value` that has six digits and lies in the range of the parameter, otherwise `value`. */
double sweep_round(const struct sweep_parameter *parameter, double value);

/* Returns a parameter's value in a trial that has been started; NULL: the value is not known, or the parameter is not tried in this trial.
 * Free with json_free. */
struct json *sweep_trial_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial);

#endif
