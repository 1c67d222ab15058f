/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/suggestion.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/philox.h"

#define NUMBER_TEXT_MAX 40
#define EXACT_MAX 9007199254740992.0 /* 2^53 */

/* How many values a parameter has, at most SWEEP_TRIALS_MAX + 1; 0: infinitely many. */
static int64_t choices_of(const struct sweep_parameter *parameter)
{
    int64_t count = parameter->has_integer ? parameter->integer.max - parameter->integer.min + 1
                                           : (int64_t)json_count(parameter->values);
    return count > SWEEP_TRIALS_MAX ? SWEEP_TRIALS_MAX + 1 : count;
}

/* Points of the grid of the parameters from number `first` on, at most SWEEP_TRIALS_MAX + 1. */
static int64_t grid_size(const struct training_sweep *sweep, unsigned first)
{
    int64_t size = 1;
    for (unsigned i = first; i < sweep->parameter_count && size <= SWEEP_TRIALS_MAX; i++)
        size *= choices_of(&sweep->parameters[i]);
    return size > SWEEP_TRIALS_MAX ? SWEEP_TRIALS_MAX + 1 : size;
}

int64_t suggestion_count(const struct training_sweep *sweep)
{
    int64_t most = sweep->max_trials == FIELD_UNSET ? SWEEP_TRIALS_MAX : sweep->max_trials;
    if (sweep->algorithm.type != SWEEP_GRID)
        return most;
    int64_t points = grid_size(sweep, 0);
    return points < most ? points : most;
}

static struct json *choice(const struct sweep_parameter *parameter, int64_t index)
{
    return parameter->has_integer ? json_new_integer(parameter->integer.min + index)
                                  : json_copy(json_element(parameter->values, (size_t)index));
}

/* Uniform in [0, 1), with 53 bits. */
static double draw(const struct training_sweep *sweep, unsigned parameter, int64_t trial)
{
    struct philox_words words = philox((uint64_t)sweep->algorithm.seed, (uint64_t)trial, parameter);
    uint64_t bits = ((uint64_t)words.word[0] << 32 | words.word[1]) >> 11;
    return (double)bits / EXACT_MAX;
}

static double round_within(double value, struct sweep_range range)
{
    char text[NUMBER_TEXT_MAX];
    snprintf(text, sizeof text, "%.6g", value);
    double rounded = strtod(text, NULL);
    return rounded >= range.min && rounded <= range.max ? rounded : value;
}

static struct json *random_value(const struct sweep_parameter *parameter, double drawn)
{
    const struct sweep_range *range = parameter->has_uniform ? &parameter->uniform : &parameter->log_uniform;
    if (parameter->has_uniform)
        return json_new_number(round_within(range->min * (1 - drawn) + range->max * drawn, *range));
    if (parameter->has_log_uniform)
        return json_new_number(round_within(exp(log(range->min) * (1 - drawn) + log(range->max) * drawn), *range));
    double count = parameter->has_integer ? (double)(parameter->integer.max - parameter->integer.min + 1)
                                          : (double)json_count(parameter->values);
    return choice(parameter, (int64_t)(drawn * count));
}

struct json *suggestion_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial)
{
    const struct sweep_parameter *wanted = &sweep->parameters[parameter];
    if (sweep->algorithm.type == SWEEP_RANDOM)
        return random_value(wanted, draw(sweep, parameter, trial));
    return choice(wanted, trial / grid_size(sweep, parameter + 1) % choices_of(wanted));
}
