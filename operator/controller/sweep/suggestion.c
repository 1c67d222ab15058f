/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/suggestion.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/job/sweep_value.h"
#include "common/memory.h"
#include "operator/controller/sweep/population.h"
#include "operator/controller/sweep/tpe.h"

#define NUMBER_TEXT_MAX 40
#define RECORD_MAX (SWEEP_PARAMETERS_MAX * NUMBER_TEXT_MAX)

int64_t suggestion_count(const struct training_sweep *sweep)
{
    int64_t most = sweep->max_trials == FIELD_UNSET ? SWEEP_TRIALS_MAX : sweep->max_trials;
    if (sweep->algorithm.type != SWEEP_GRID)
        return most;
    int64_t points = sweep_point_count(sweep);
    return points < most ? points : most;
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
    if (parameter->has_uniform || parameter->has_log_uniform)
        place = sweep_round(parameter, parameter->has_log_uniform ? exp(place) : place);
    return sweep_value_of_number(parameter, place);
}

/* The number nearest to it that the space has: the status may have been edited. */
static double place_of(const struct sweep_parameter *parameter, const struct parzen_space *space, double number)
{
    double place = parameter->has_log_uniform ? log(fmax(number, parameter->log_uniform.min)) : number;
    if (space->choices > 0)
        return floor(fmin(fmax(place, 0), (double)space->choices - 1));
    return fmin(fmax(space->step > 0 ? floor(place) : place, space->low), space->high);
}

static double loss_of(const struct training_sweep *sweep, const struct trial_record *record)
{
    if (record->state != TRIAL_SUCCEEDED || !record->objective)
        return INFINITY;
    double objective = strtod(record->objective, NULL);
    return sweep->objective.goal == GOAL_MAXIMIZE ? -objective : objective;
}

static bool is_held_back(const struct trial_record *record)
{
    return record->state == TRIAL_STOPPED || record->state == TRIAL_PAUSED;
}

/* Those that others can learn from: that have succeeded, or were stopped or paused since they were not good. */
static int64_t judged_count(const struct training_sweep *sweep)
{
    int64_t count = 0;
    for (unsigned i = 0; i < sweep->status.result_count; i++)
        count += sweep->status.results[i].state == TRIAL_SUCCEEDED || is_held_back(&sweep->status.results[i]);
    return count;
}

static double learned_place(const struct training_sweep *sweep, unsigned parameter, int64_t trial)
{
    const struct sweep_status *status = &sweep->status;
    struct parzen_space space = space_of(&sweep->parameters[parameter]);
    SCOPED_FREE struct tpe_trial *trials = memory_allocate(status->result_count + 1, sizeof *trials);
    double draws[TPE_DRAWS], number;
    size_t count = 0;
    for (unsigned i = 0; i < status->result_count; i++) {
        bool known = sweep_recorded_number(sweep, parameter, i, &number);
        if (known || status->results[i].values)
            trials[count++] =
                (struct tpe_trial){.value = known ? place_of(&sweep->parameters[parameter], &space, number) : NAN,
                                   .loss = loss_of(sweep, &status->results[i]),
                                   .stopped = is_held_back(&status->results[i])};
    }
    for (size_t i = 0; i < TPE_DRAWS; i++)
        draws[i] = sweep_draw(sweep, parameter, trial, i + 1);
    return tpe_suggest(&space, trials, count, draws);
}

static struct json *learned_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial)
{
    struct json *recorded = sweep_trial_value(sweep, parameter, trial);
    if (recorded)
        return recorded;
    if (population_is_used(sweep))
        return population_value(sweep, parameter, trial);
    if (judged_count(sweep) < sweep->algorithm.startup_trials)
        return sweep_drawn_value(sweep, parameter, trial);
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
            value && values ? memory_format("%" PRId64, position_in(values, value)) : json_scalar_text(value);
        buffer_format(&text, "%s%s", i > 0 ? "," : "", number ? number : "");
    }
    return buffer_take(&text);
}

/* ---------------------------------------------------------------- all algorithms */

struct json *suggestion_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial)
{
    int condition = sweep_condition_of(sweep, parameter);
    SCOPED_JSON *value = condition < 0 ? NULL : suggestion_value(sweep, (unsigned)condition, trial);
    if (!sweep_applies(sweep, parameter, value))
        return NULL;
    return sweep_values_are_recorded(sweep) ? learned_value(sweep, parameter, trial)
                                            : sweep_drawn_value(sweep, parameter, trial);
}
