/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/sweep_value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/sweep_parameter.h"
#include "common/philox.h"

#define NUMBER_TEXT_MAX 40
#define EXACT_MAX 9007199254740992.0 /* 2^53 */

/* ---------------------------------------------------------------- conditions */

int sweep_condition_of(const struct training_sweep *sweep, unsigned parameter)
{
    const struct sweep_when *when = &sweep->parameters[parameter].when;
    for (unsigned i = 0; sweep->parameters[parameter].has_when && when->parameter && i < parameter; i++) {
        const char *name = sweep_parameter_name(&sweep->parameters[i]);
        if (name && strcmp(name, when->parameter) == 0)
            return (int)i;
    }
    return -1;
}

bool sweep_applies(const struct training_sweep *sweep, unsigned parameter, const struct json *value)
{
    if (sweep_condition_of(sweep, parameter) < 0)
        return true;
    const struct json *wanted = json_first(sweep->parameters[parameter].when.values);
    while (wanted && !json_equal(wanted, value))
        wanted = json_next(wanted);
    return value && wanted;
}

/* ---------------------------------------------------------------- on a grid */

#define NOT_TRIED (-1)

/* A point of a grid: the number of the value that each parameter has there. */
struct point {
    const struct training_sweep *sweep;
    unsigned count;
    int conditions[SWEEP_PARAMETERS_MAX]; /* sweep_condition_of */
    bool decides[SWEEP_PARAMETERS_MAX];   /* whether one is tried depends on its value */
    int64_t chosen[SWEEP_PARAMETERS_MAX];
};

int64_t sweep_integer_step(const struct sweep_parameter *parameter)
{
    return parameter->integer.step > 0 ? parameter->integer.step : 1;
}

int64_t sweep_integer_last(const struct sweep_parameter *parameter)
{
    int64_t range = parameter->integer.max - parameter->integer.min;
    return parameter->integer.max - range % sweep_integer_step(parameter);
}

/* Of a range. */
static int64_t integer_count(const struct sweep_parameter *parameter)
{
    return (sweep_integer_last(parameter) - parameter->integer.min) / sweep_integer_step(parameter) + 1;
}

/* How many values a parameter has, at most SWEEP_TRIALS_MAX + 1; 0: infinitely many. */
static int64_t choices_of(const struct sweep_parameter *parameter)
{
    if (parameter->has_integer && (parameter->integer.min == FIELD_UNSET || parameter->integer.max == FIELD_UNSET))
        return 0;
    int64_t count = parameter->has_integer ? integer_count(parameter) : (int64_t)json_count(parameter->values);
    return count > SWEEP_TRIALS_MAX ? SWEEP_TRIALS_MAX + 1 : count;
}

static struct json *choice(const struct sweep_parameter *parameter, int64_t index)
{
    return parameter->has_integer ? json_new_integer(parameter->integer.min + index * sweep_integer_step(parameter))
                                  : json_copy(json_element(parameter->values, (size_t)index));
}

static struct point point_of(const struct training_sweep *sweep)
{
    unsigned count = sweep->parameter_count < SWEEP_PARAMETERS_MAX ? sweep->parameter_count : SWEEP_PARAMETERS_MAX;
    struct point point = {.sweep = sweep, .count = count};
    for (unsigned i = 0; i < count; i++) {
        point.conditions[i] = sweep_condition_of(sweep, i);
        if (point.conditions[i] >= 0)
            point.decides[point.conditions[i]] = true;
    }
    return point;
}

/* Given the values of the parameters before it. */
static bool is_tried(const struct point *point, unsigned parameter)
{
    int condition = point->conditions[parameter];
    if (condition < 0)
        return true;
    if (point->chosen[condition] == NOT_TRIED)
        return false;
    SCOPED_JSON *value = choice(&point->sweep->parameters[condition], point->chosen[condition]);
    return sweep_applies(point->sweep, parameter, value);
}

/* Points that have the values chosen of the parameters before number `first`, at most SWEEP_TRIALS_MAX + 1. */
static int64_t points_from(struct point *point, unsigned first)
{
    if (first == point->count)
        return 1;
    point->chosen[first] = NOT_TRIED;
    if (!is_tried(point, first))
        return points_from(point, first + 1);
    int64_t size = 0, choices = choices_of(&point->sweep->parameters[first]);
    if (!point->decides[first])
        size = choices * points_from(point, first + 1);
    for (int64_t i = 0; point->decides[first] && i < choices && size <= SWEEP_TRIALS_MAX; i++) {
        point->chosen[first] = i;
        size += points_from(point, first + 1);
    }
    return size > SWEEP_TRIALS_MAX ? SWEEP_TRIALS_MAX + 1 : size;
}

int64_t sweep_point_count(const struct training_sweep *sweep)
{
    struct point point = point_of(sweep);
    for (unsigned i = 0; i < point.count; i++)
        if (choices_of(&sweep->parameters[i]) == 0)
            return 0;
    return points_from(&point, 0);
}

int64_t sweep_trial_limit(const struct training_sweep *sweep)
{
    int64_t points = sweep->algorithm.type == SWEEP_PBT ? 0 : sweep_point_count(sweep);
    return points == 0 || points > SWEEP_TRIALS_MAX ? SWEEP_TRIALS_MAX : points;
}

int64_t sweep_trial_count(const struct training_sweep *sweep)
{
    int64_t limit = sweep_trial_limit(sweep);
    return sweep->max_trials != FIELD_UNSET && sweep->max_trials < limit ? sweep->max_trials : limit;
}

bool sweep_is_exhausted(const struct training_sweep *sweep)
{
    int64_t limit = sweep_trial_limit(sweep);
    return sweep->algorithm.type != SWEEP_GRID && limit < sweep->max_trials && sweep->status.result_count >= limit;
}

/* Chooses the value of a parameter in the point of that number among those that have the values chosen before. Returns its number among
 * those that have this value, too. */
static int64_t choose(struct point *point, unsigned parameter, int64_t number)
{
    point->chosen[parameter] = NOT_TRIED;
    if (!is_tried(point, parameter))
        return number;
    int64_t choices = choices_of(&point->sweep->parameters[parameter]);
    if (!point->decides[parameter]) {
        int64_t after = points_from(point, parameter + 1);
        point->chosen[parameter] = number / after % choices;
        return number % after;
    }
    for (int64_t i = 0; i < choices; i++) {
        point->chosen[parameter] = i;
        int64_t after = points_from(point, parameter + 1);
        if (number < after)
            break;
        number -= after;
    }
    return number;
}

struct json *sweep_point_value(const struct training_sweep *sweep, unsigned parameter, int64_t number)
{
    struct point point = point_of(sweep);
    int64_t count = sweep_point_count(sweep);
    number = count > 0 ? number % count : 0;
    if (count == 0 || parameter >= point.count)
        return json_new_null();
    for (unsigned i = 0; i <= parameter; i++)
        number = choose(&point, i, number);
    return point.chosen[parameter] == NOT_TRIED ? NULL : choice(&sweep->parameters[parameter], point.chosen[parameter]);
}

/* ---------------------------------------------------------------- at random */

double sweep_draw(const struct training_sweep *sweep, unsigned parameter, int64_t trial, uint64_t number)
{
    struct philox_words words = philox((uint64_t)sweep->algorithm.seed, (uint64_t)trial, number << 32 | parameter);
    uint64_t bits = ((uint64_t)words.word[0] << 32 | words.word[1]) >> 11;
    return (double)bits / EXACT_MAX;
}

static const struct sweep_range *range_of(const struct sweep_parameter *parameter)
{
    return parameter->has_uniform ? &parameter->uniform : parameter->has_log_uniform ? &parameter->log_uniform : NULL;
}

double sweep_round(const struct sweep_parameter *parameter, double value)
{
    const struct sweep_range *range = range_of(parameter);
    char text[NUMBER_TEXT_MAX];
    snprintf(text, sizeof text, "%.6g", value);
    double rounded = strtod(text, NULL);
    return range && rounded >= range->min && rounded <= range->max ? rounded : value;
}

double sweep_integer_log(const struct sweep_parameter *parameter, bool end)
{
    return log(end ? (double)parameter->integer.max + 0.5 : (double)parameter->integer.min - 0.5);
}

static struct json *random_value(const struct sweep_parameter *parameter, double drawn)
{
    const struct sweep_range *range = range_of(parameter);
    if (parameter->has_uniform)
        return json_new_number(sweep_round(parameter, range->min * (1 - drawn) + range->max * drawn));
    if (parameter->has_log_uniform)
        return json_new_number(sweep_round(parameter, exp(log(range->min) * (1 - drawn) + log(range->max) * drawn)));
    if (parameter->has_integer && parameter->integer.scale == INTEGER_LOG) {
        double low = sweep_integer_log(parameter, false), high = sweep_integer_log(parameter, true);
        return sweep_value_of_number(parameter, exp(low * (1 - drawn) + high * drawn));
    }
    double count = parameter->has_integer ? (double)integer_count(parameter) : (double)json_count(parameter->values);
    return choice(parameter, (int64_t)(drawn * count));
}

struct json *sweep_random_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial, uint64_t number)
{
    return random_value(&sweep->parameters[parameter], sweep_draw(sweep, parameter, trial, number));
}

struct json *sweep_drawn_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial)
{
    return sweep->algorithm.type == SWEEP_GRID ? sweep_point_value(sweep, parameter, trial)
                                               : sweep_random_value(sweep, parameter, trial, 0);
}

/* ---------------------------------------------------------------- as recorded */

bool sweep_values_are_recorded(const struct training_sweep *sweep)
{
    return sweep->algorithm.type == SWEEP_TPE || sweep->algorithm.type == SWEEP_PBT;
}

bool sweep_has_record(const struct training_sweep *sweep, int64_t trial)
{
    return sweep->algorithm.type != SWEEP_GRID && trial < sweep->status.result_count &&
           sweep->status.results[trial].values;
}

bool sweep_recorded_number(const struct training_sweep *sweep, unsigned parameter, int64_t trial, double *ret_number)
{
    const struct sweep_status *status = &sweep->status;
    const char *text = trial < status->result_count ? status->results[trial].values : NULL;
    for (unsigned i = 0; text && i < parameter; i++) {
        text = strchr(text, ',');
        text = text ? text + 1 : NULL;
    }
    if (!text)
        return false;
    char *end;
    *ret_number = strtod(text, &end);
    return end > text && isfinite(*ret_number);
}

struct json *sweep_value_of_number(const struct sweep_parameter *parameter, double number)
{
    const struct sweep_range *range = range_of(parameter);
    if (range)
        return json_new_number(fmin(fmax(number, range->min), range->max));
    double last =
        (double)(parameter->has_integer ? integer_count(parameter) : (int64_t)json_count(parameter->values)) - 1;
    double distance = parameter->has_integer ? number - (double)parameter->integer.min : number;
    double position =
        parameter->has_integer ? round(distance / (double)sweep_integer_step(parameter)) : floor(distance);
    return choice(parameter, (int64_t)fmin(fmax(position, 0), last));
}

struct json *sweep_trial_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial)
{
    double number;
    int condition = sweep_condition_of(sweep, parameter);
    SCOPED_JSON *value = condition < 0 ? NULL : sweep_trial_value(sweep, (unsigned)condition, trial);
    if (!sweep_applies(sweep, parameter, value))
        return NULL;
    if (!sweep_values_are_recorded(sweep) && !sweep_has_record(sweep, trial))
        return sweep_drawn_value(sweep, parameter, trial);
    if (!sweep_recorded_number(sweep, parameter, trial, &number))
        return NULL;
    return sweep_value_of_number(&sweep->parameters[parameter], number);
}
