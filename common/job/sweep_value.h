/* SPDX-License-Identifier: Apache-2.0
 *
 * Determines the values that a trial of a sweep has for the sweep's parameters. With Grid and Random they follow from the spec and the
 * trial's number. With TPE the operator draws them from the results of other trials and records them in the sweep's status. The operator
 * builds trials with these functions, and `cox` shows trials whose jobs are gone.
 */
#ifndef COXSWAIN_JOB_SWEEP_VALUE_H
#define COXSWAIN_JOB_SWEEP_VALUE_H

#include "common/job/training_sweep.h"

/* Returns how many points the grid of the parameters has, at most SWEEP_TRIALS_MAX + 1; 0: a parameter has infinitely many values.
 * Points that differ in nothing but parameters that are not tried there (sweep_applies) are one point. */
int64_t sweep_point_count(const struct training_sweep *sweep);

/* Returns the number of the earlier parameter that the `when` of a parameter names; -1: it has no `when`, or one that is not sound. */
int sweep_condition_of(const struct training_sweep *sweep, unsigned parameter);
/* Returns whether a parameter is tried in trials in which the one that its `when` names has this value; NULL: that one is not tried. */
bool sweep_applies(const struct training_sweep *sweep, unsigned parameter, const struct json *value);

/* Returns a number that is uniform in [0, 1), with 53 bits. `number` counts the draws for the same value. */
double sweep_draw(const struct training_sweep *sweep, unsigned parameter, int64_t trial, uint64_t number);
/* Returns the value of a parameter in a trial, a number, a string or a boolean: the point of the grid, with any other algorithm
 * one drawn at random, whether the parameter is tried or not; NULL: with Grid, the parameter is not tried in this trial. Numbers of a
 * range are rounded to six digits, if that leaves them in the range. Free with json_free. */
struct json *sweep_drawn_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial);

/* Returns whether the values of trials are recorded in the status: they follow from results, not from the spec alone. */
bool sweep_values_are_recorded(const struct training_sweep *sweep);
/* Gets what is recorded of a trial's parameter: the value itself, of `values` the position in the list. Returns false when nothing is. */
bool sweep_recorded_number(const struct training_sweep *sweep, unsigned parameter, int64_t trial, double *ret_number);
/* Returns the value that is recorded as this number, or the nearest that the parameter can have: the status may have been edited. */
struct json *sweep_value_of_number(const struct sweep_parameter *parameter, double number);
/* Returns the number nearest to `value` that has six digits and lies in the range of the parameter, otherwise `value`. */
double sweep_round(const struct sweep_parameter *parameter, double value);

/* Returns the value that a trial which has been started has; NULL: it is not known, or the parameter is not tried in this trial. Free
 * with json_free. */
struct json *sweep_trial_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial);

#endif
