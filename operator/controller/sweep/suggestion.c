/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/suggestion.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/memory.h"
#include "common/philox.h"
#include "operator/controller/sweep/tpe.h"

#define NUMBER_TEXT_MAX 40
#define RECORD_MAX (SWEEP_PARAMETERS_MAX * NUMBER_TEXT_MAX)
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

/* ---------------------------------------------------------------- at random */

/* Uniform in [0, 1), with 53 bits. `number` counts what is drawn for the same value. */
static double draw(const struct training_sweep *sweep, unsigned parameter, int64_t trial, uint64_t number)
{
    struct philox_words words = philox((uint64_t)sweep->algorithm.seed, (uint64_t)trial, number << 32 | parameter);
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

/* ---------------------------------------------------------------- from earlier trials */

/* In which a value is a number: the logarithm of one of `logUniform`, the position in a list. */
static struct parzen_space space_of(const struct sweep_parameter *parameter)
{
    if (parameter->has_uniform)
        return (struct parzen_space){.low = parameter->uniform.min, .high = parameter->uniform.max};
    if (parameter->has_log_uniform)
        return (struct parzen_space){.low = log(parameter->log_uniform.min), .high = log(parameter->log_uniform.max)};
    if (parameter->has_integer)
        return (struct parzen_space){
            .low = (double)parameter->integer.min, .high = (double)parameter->integer.max, .step = 1};
    return (struct parzen_space){.choices = json_count(parameter->values)};
}

static struct json *value_at(const struct sweep_parameter *parameter, double place)
{
    if (parameter->has_uniform)
        return json_new_number(round_within(place, parameter->uniform));
    if (parameter->has_log_uniform)
        return json_new_number(round_within(exp(place), parameter->log_uniform));
    return parameter->has_integer ? json_new_integer((int64_t)place) : choice(parameter, (int64_t)place);
}

/* What is recorded of a trial's parameter: the value itself, or its position in a list. Returns false when nothing is. */
static bool recorded_number(const struct training_sweep *sweep, unsigned parameter, int64_t trial, double *ret_number)
{
    const struct sweep_status *status = &sweep->status;
    const char *text = trial < status->history_count ? status->history[trial].values : NULL;
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

/* The number nearest to it that the space has: the status may have been edited. */
static double place_of(const struct sweep_parameter *parameter, const struct parzen_space *space, double number)
{
    double place = parameter->has_log_uniform ? log(fmax(number, parameter->log_uniform.min)) : number;
    if (space->choices > 0)
        return floor(fmin(fmax(place, 0), (double)space->choices - 1));
    return fmin(fmax(space->step > 0 ? floor(place) : place, space->low), space->high);
}

/* Returns a value as it is recorded; NULL: nothing is recorded of it. */
static struct json *recorded_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial)
{
    const struct sweep_parameter *wanted = &sweep->parameters[parameter];
    double number;
    if (!recorded_number(sweep, parameter, trial, &number))
        return NULL;
    if (wanted->has_uniform)
        return json_new_number(fmin(fmax(number, wanted->uniform.min), wanted->uniform.max));
    if (wanted->has_log_uniform)
        return json_new_number(fmin(fmax(number, wanted->log_uniform.min), wanted->log_uniform.max));
    struct parzen_space space = space_of(wanted);
    return value_at(wanted, place_of(wanted, &space, number));
}

static double loss_of(const struct training_sweep *sweep, const struct trial_record *record)
{
    if (!record->objective)
        return INFINITY;
    double objective = strtod(record->objective, NULL);
    return sweep->objective.goal == GOAL_MAXIMIZE ? -objective : objective;
}

static int64_t judged_count(const struct training_sweep *sweep)
{
    int64_t count = 0;
    for (unsigned i = 0; i < sweep->status.history_count; i++)
        count += sweep->status.history[i].objective != NULL;
    return count;
}

static double learned_place(const struct training_sweep *sweep, unsigned parameter, int64_t trial)
{
    const struct sweep_status *status = &sweep->status;
    struct parzen_space space = space_of(&sweep->parameters[parameter]);
    SCOPED_FREE struct tpe_trial *trials = memory_allocate(status->history_count + 1, sizeof *trials);
    double draws[TPE_DRAWS], number;
    size_t count = 0;
    for (unsigned i = 0; i < status->history_count; i++)
        if (recorded_number(sweep, parameter, i, &number))
            trials[count++] = (struct tpe_trial){place_of(&sweep->parameters[parameter], &space, number),
                                                 loss_of(sweep, &status->history[i])};
    for (size_t i = 0; i < TPE_DRAWS; i++)
        draws[i] = draw(sweep, parameter, trial, i + 1);
    return tpe_suggest(&space, trials, count, draws);
}

static struct json *learned_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial)
{
    struct json *recorded = recorded_value(sweep, parameter, trial);
    if (recorded)
        return recorded;
    if (judged_count(sweep) < sweep->algorithm.startup_trials)
        return random_value(&sweep->parameters[parameter], draw(sweep, parameter, trial, 0));
    return value_at(&sweep->parameters[parameter], learned_place(sweep, parameter, trial));
}

static int64_t position_in(const struct json *values, const struct json *wanted)
{
    int64_t position = 0;
    for (const struct json *value = json_first(values); value && !json_equal(value, wanted); value = json_next(value))
        position++;
    return position;
}

char *suggestion_record(const struct training_sweep *sweep, int64_t trial)
{
    SCOPED_BUFFER text;
    buffer_init(&text, RECORD_MAX);
    for (unsigned i = 0; i < sweep->parameter_count; i++) {
        const struct json *values = sweep->parameters[i].values;
        SCOPED_JSON *value = suggestion_value(sweep, i, trial);
        SCOPED_FREE char *number =
            values ? memory_format("%" PRId64, position_in(values, value)) : json_scalar_text(value);
        buffer_format(&text, "%s%s", i > 0 ? "," : "", number);
    }
    return buffer_take(&text);
}

/* ---------------------------------------------------------------- all algorithms */

struct json *suggestion_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial)
{
    const struct sweep_parameter *wanted = &sweep->parameters[parameter];
    switch (sweep->algorithm.type) {
    case SWEEP_RANDOM:
        return random_value(wanted, draw(sweep, parameter, trial, 0));
    case SWEEP_TPE:
        return learned_value(sweep, parameter, trial);
    case SWEEP_GRID:
        break;
    }
    return choice(wanted, trial / grid_size(sweep, parameter + 1) % choices_of(wanted));
}
