/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/sweep_value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/philox.h"

#define NUMBER_TEXT_MAX 40
#define EXACT_MAX 9007199254740992.0 /* 2^53 */

/* ---------------------------------------------------------------- on a grid */

/* How many values a parameter has, at most SWEEP_TRIALS_MAX + 1; 0: infinitely many. */
static int64_t choices_of(const struct sweep_parameter *parameter)
{
    int64_t count = parameter->has_integer ? parameter->integer.max - parameter->integer.min + 1
                                           : (int64_t)json_count(parameter->values);
    return count > SWEEP_TRIALS_MAX ? SWEEP_TRIALS_MAX + 1 : count;
}

/* Points of the grid of the parameters from number `first` on, at most SWEEP_TRIALS_MAX + 1. */
static int64_t point_count(const struct training_sweep *sweep, unsigned first)
{
    int64_t size = 1;
    for (unsigned i = first; i < sweep->parameter_count && size <= SWEEP_TRIALS_MAX; i++)
        size *= choices_of(&sweep->parameters[i]);
    return size > SWEEP_TRIALS_MAX ? SWEEP_TRIALS_MAX + 1 : size;
}

int64_t sweep_point_count(const struct training_sweep *sweep)
{
    return point_count(sweep, 0);
}

static struct json *choice(const struct sweep_parameter *parameter, int64_t index)
{
    return parameter->has_integer ? json_new_integer(parameter->integer.min + index)
                                  : json_copy(json_element(parameter->values, (size_t)index));
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

static struct json *random_value(const struct sweep_parameter *parameter, double drawn)
{
    const struct sweep_range *range = range_of(parameter);
    if (parameter->has_uniform)
        return json_new_number(sweep_round(parameter, range->min * (1 - drawn) + range->max * drawn));
    if (parameter->has_log_uniform)
        return json_new_number(sweep_round(parameter, exp(log(range->min) * (1 - drawn) + log(range->max) * drawn)));
    double count = parameter->has_integer ? (double)(parameter->integer.max - parameter->integer.min + 1)
                                          : (double)json_count(parameter->values);
    return choice(parameter, (int64_t)(drawn * count));
}

struct json *sweep_drawn_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial)
{
    const struct sweep_parameter *wanted = &sweep->parameters[parameter];
    if (sweep->algorithm.type != SWEEP_GRID)
        return random_value(wanted, sweep_draw(sweep, parameter, trial, 0));
    int64_t choices = choices_of(wanted), after = point_count(sweep, parameter + 1);
    return choices > 0 && after > 0 ? choice(wanted, trial / after % choices) : json_new_null();
}

/* ---------------------------------------------------------------- as recorded */

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
    double last = parameter->has_integer ? (double)(parameter->integer.max - parameter->integer.min)
                                         : (double)json_count(parameter->values) - 1;
    double position = floor(parameter->has_integer ? number - (double)parameter->integer.min : number);
    return choice(parameter, (int64_t)fmin(fmax(position, 0), last));
}

struct json *sweep_trial_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial)
{
    double number;
    if (sweep->algorithm.type != SWEEP_TPE)
        return sweep_drawn_value(sweep, parameter, trial);
    if (!sweep_recorded_number(sweep, parameter, trial, &number))
        return NULL;
    return sweep_value_of_number(&sweep->parameters[parameter], number);
}
