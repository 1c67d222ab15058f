/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/suggestion.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/extremes.h"
#include "common/job/sweep_value.h"
#include "common/memory.h"
#include "operator/controller/sweep/population.h"
#include "operator/controller/sweep/tpe.h"

#define NUMBER_TEXT_MAX 40
#define ORDERED_LEAST 3 /* two values are as far from each other either way */
#define REDRAWS 64
#define FIRST_REDRAW (TPE_CANDIDATES + 1) /* the numbers below are those of TPE's draws */
#define RECORD_MAX (SWEEP_PARAMETERS_MAX * NUMBER_TEXT_MAX)

/* ---------------------------------------------------------------- from earlier trials */

/* Whether a list has three or more numbers, from the lowest to the highest or the other way round. */
static bool is_ordered(const struct json *values)
{
    int ascending = 0, descending = 0, count = 0;
    double before = NAN;
    for (const struct json *value = json_first(values); value; value = json_next(value), count++) {
        double number = json_type(value) == JSON_NUMBER ? json_number(value, NAN) : NAN;
        ascending += number > before;
        descending += number < before;
        before = number;
    }
    return count >= ORDERED_LEAST && (ascending == count - 1 || descending == count - 1);
}

static bool is_log_integer(const struct sweep_parameter *parameter)
{
    return parameter->has_integer && parameter->integer.scale == INTEGER_LOG;
}

/* In which a value is a number: the logarithm of one of `logUniform` or of an integer with scale Log, the position in a list. Integers
 * with a step are counted from the lowest one. */
static struct parzen_space space_of(const struct sweep_parameter *parameter)
{
    if (parameter->has_uniform)
        return (struct parzen_space){.low = parameter->uniform.min, .high = parameter->uniform.max};
    if (parameter->has_log_uniform)
        return (struct parzen_space){.low = log(parameter->log_uniform.min), .high = log(parameter->log_uniform.max)};
    if (is_log_integer(parameter))
        return (struct parzen_space){.low = sweep_integer_log(parameter, false),
                                     .high = sweep_integer_log(parameter, true)};
    if (parameter->has_integer) {
        int64_t min = parameter->integer.min;
        int64_t steps = (sweep_integer_last(parameter) - min) / sweep_integer_step(parameter);
        return (struct parzen_space){.low = (double)min, .high = (double)(min + steps), .step = 1};
    }
    if (is_ordered(parameter->values))
        return (struct parzen_space){.high = (double)json_count(parameter->values) - 1, .step = 1};
    return (struct parzen_space){.choices = json_count(parameter->values)};
}

static struct json *value_at(const struct sweep_parameter *parameter, double place)
{
    if (parameter->has_uniform || parameter->has_log_uniform)
        place = sweep_round(parameter, parameter->has_log_uniform ? exp(place) : place);
    else if (is_log_integer(parameter))
        place = exp(place);
    else if (parameter->has_integer)
        place = (double)parameter->integer.min +
                (place - (double)parameter->integer.min) * (double)sweep_integer_step(parameter);
    return sweep_value_of_number(parameter, place);
}

/* The number nearest to it that the space has: the status may have been edited. */
static double place_of(const struct sweep_parameter *parameter, const struct parzen_space *space, double number)
{
    double place = number;
    if (parameter->has_log_uniform)
        place = log(fmax(number, parameter->log_uniform.min));
    else if (is_log_integer(parameter))
        place = log(fmax(number, (double)parameter->integer.min));
    else if (parameter->has_integer)
        place = (double)parameter->integer.min +
                (number - (double)parameter->integer.min) / (double)sweep_integer_step(parameter);
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

/* Returns whether the trial has no loss because it was worse than others or diverged. */
static bool was_not_good(const struct trial_record *record)
{
    return record->state == TRIAL_STOPPED || record->state == TRIAL_PAUSED || record->state == TRIAL_DIVERGED;
}

/* Counts the trials that others can learn from: those that succeeded, and those that was_not_good names. */
static int64_t judged_count(const struct training_sweep *sweep)
{
    int64_t count = 0;
    for (unsigned i = 0; i < sweep->status.result_count; i++)
        count += sweep->status.results[i].state == TRIAL_SUCCEEDED || was_not_good(&sweep->status.results[i]);
    return count;
}

/* Reads the recorded values of a trial; NAN: the parameter was not tried. */
static void recorded_point(const struct training_sweep *sweep, const struct parzen_space *spaces, unsigned trial,
                           double *ret_point)
{
    double number;
    for (unsigned i = 0; i < sweep->parameter_count; i++)
        ret_point[i] =
            sweep_recorded_number(sweep, i, trial, &number) ? place_of(&sweep->parameters[i], &spaces[i], number) : NAN;
}

/* The place of the integer that a place between two of them stands for. */
static double settled_place(const struct sweep_parameter *parameter, double place)
{
    SCOPED_JSON *value = value_at(parameter, place);
    return log(json_number(value, 1));
}

/* Implements tpe_search.settle. */
static void settle(const void *context, double *point)
{
    const struct training_sweep *sweep = context;
    for (unsigned i = 0; i < sweep->parameter_count; i++) {
        if (is_log_integer(&sweep->parameters[i]))
            point[i] = settled_place(&sweep->parameters[i], point[i]);
        int condition = sweep_condition_of(sweep, i);
        bool is_known = condition >= 0 && !isnan(point[condition]);
        SCOPED_JSON *value = is_known ? value_at(&sweep->parameters[condition], point[condition]) : NULL;
        if (!sweep_applies(sweep, i, value))
            point[i] = NAN;
    }
}

/* Returns the point that TPE proposes for a trial; NULL: its values are drawn in another way, or recorded. Free with free(). */
static double *learned_point(const struct training_sweep *sweep, int64_t trial)
{
    if (sweep->algorithm.type != SWEEP_TPE || sweep_has_record(sweep, trial) ||
        judged_count(sweep) < sweep->algorithm.startup_trials)
        return NULL;
    const struct trial_record *records = sweep->status.results;
    unsigned parameters = sweep->parameter_count, results = sweep->status.result_count;
    SCOPED_FREE struct parzen_space *spaces = memory_allocate(parameters, sizeof *spaces);
    SCOPED_FREE struct tpe_trial *trials = memory_allocate(results + 1, sizeof *trials);
    SCOPED_FREE double *points = memory_allocate((size_t)results * parameters + 1, sizeof *points);
    SCOPED_FREE double *draws = memory_allocate(tpe_draw_count(parameters), sizeof *draws);
    size_t count = 0;
    for (unsigned i = 0; i < parameters; i++)
        spaces[i] = space_of(&sweep->parameters[i]);
    for (unsigned i = 0; i < results; i++) {
        double *point = points + count * parameters;
        if (!sweep_has_record(sweep, i))
            continue;
        recorded_point(sweep, spaces, i, point);
        trials[count++] = (struct tpe_trial){
            .point = point, .loss = loss_of(sweep, &records[i]), .stopped = was_not_good(&records[i])};
    }
    for (size_t i = 0; i < tpe_draw_count(parameters); i++)
        draws[i] = sweep_draw(sweep, (unsigned)(i % (parameters + 1)), trial, i / (parameters + 1) + 1);
    double *point = memory_allocate(parameters, sizeof *point);
    tpe_suggest(&(struct tpe_search){spaces, parameters, settle, sweep}, trials, count, draws, point);
    return point;
}

/* ---------------------------------------------------------------- all algorithms */

/* How the values of a trial are chosen that the status does not have. */
struct draw {
    const double *point; /* TPE's proposal; NULL: at random */
    uint64_t number;     /* of the draws at random for the same trial */
    bool enumerates;     /* with the values at a point of the grid instead */
    int64_t grid_point;
};

static struct json *chosen_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial,
                                 const struct draw *draw)
{
    struct json *recorded = sweep_has_record(sweep, trial) ? sweep_trial_value(sweep, parameter, trial) : NULL;
    if (recorded)
        return recorded;
    if (population_is_used(sweep))
        return population_value(sweep, parameter, trial);
    if (draw->point && !isnan(draw->point[parameter]))
        return value_at(&sweep->parameters[parameter], draw->point[parameter]);
    if (draw->enumerates)
        return sweep_point_value(sweep, parameter, draw->grid_point);
    return draw->number > 0 ? sweep_random_value(sweep, parameter, trial, draw->number)
                            : sweep_drawn_value(sweep, parameter, trial);
}

static struct json *value_in(const struct training_sweep *sweep, unsigned parameter, int64_t trial,
                             const struct draw *draw)
{
    int condition = sweep_condition_of(sweep, parameter);
    SCOPED_JSON *value = condition < 0 ? NULL : value_in(sweep, (unsigned)condition, trial, draw);
    return sweep_applies(sweep, parameter, value) ? chosen_value(sweep, parameter, trial, draw) : NULL;
}

struct json *suggestion_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial)
{
    SCOPED_FREE double *point = learned_point(sweep, trial);
    return value_in(sweep, parameter, trial, &(struct draw){.point = point});
}

static int64_t position_in(const struct json *values, const struct json *wanted)
{
    int64_t position = 0;
    for (const struct json *value = json_first(values); value && !json_equal(value, wanted); value = json_next(value))
        position++;
    return position;
}

static char *record_of(const struct training_sweep *sweep, int64_t trial, const struct draw *draw)
{
    SCOPED_BUFFER text = BUFFER_INIT(RECORD_MAX);
    for (unsigned i = 0; i < sweep->parameter_count; i++) {
        const struct json *values = sweep->parameters[i].values;
        SCOPED_JSON *value = value_in(sweep, i, trial, draw);
        SCOPED_FREE char *number =
            value && values ? memory_format("%" PRId64, position_in(values, value)) : json_scalar_text(value);
        buffer_format(&text, "%s%s", i > 0 ? "," : "", number ? number : "");
    }
    return buffer_take(&text);
}

/* ---------------------------------------------------------------- no values twice */

/* The records of the trials before one, sorted. */
struct earlier {
    char **records;
    size_t count;
};

static int by_text(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

static struct earlier earlier_than(const struct training_sweep *sweep, int64_t trial)
{
    size_t count = (size_t)int64_min(trial, sweep->status.result_count);
    struct earlier earlier = {memory_allocate(count + 1, sizeof *earlier.records), count};
    for (size_t i = 0; i < count; i++)
        earlier.records[i] = record_of(sweep, (int64_t)i, &(struct draw){.point = NULL});
    qsort(earlier.records, count, sizeof *earlier.records, by_text);
    return earlier;
}

static void earlier_release(struct earlier *earlier)
{
    for (size_t i = 0; i < earlier->count; i++)
        free(earlier->records[i]);
    free(earlier->records);
}

static bool has_record(const struct earlier *earlier, char *record)
{
    return bsearch(&record, earlier->records, earlier->count, sizeof *earlier->records, by_text) != NULL;
}

/* Returns whether two trials may get the same values. Two draws from a range of real numbers are hardly ever equal. */
static bool may_repeat(const struct training_sweep *sweep)
{
    for (unsigned i = 0; i < sweep->parameter_count; i++) {
        const struct sweep_parameter *parameter = &sweep->parameters[i];
        if (!parameter->has_when && (parameter->has_uniform || parameter->has_log_uniform))
            return false;
    }
    return sweep->algorithm.type == SWEEP_RANDOM || sweep->algorithm.type == SWEEP_TPE;
}

/* First come draws at random, then the points of the grid in their order. */
static struct draw draw_again(int64_t attempt)
{
    if (attempt < REDRAWS)
        return (struct draw){.number = FIRST_REDRAW + (uint64_t)attempt};
    return (struct draw){.enumerates = true, .grid_point = attempt - REDRAWS};
}

char *suggestion_record(const struct training_sweep *sweep, int64_t trial)
{
    SCOPED_FREE double *point = learned_point(sweep, trial);
    char *record = record_of(sweep, trial, &(struct draw){.point = point});
    if (sweep_has_record(sweep, trial) || !may_repeat(sweep))
        return record;
    int64_t points = sweep_point_count(sweep), attempts = REDRAWS + (points > SWEEP_TRIALS_MAX ? 0 : points);
    SCOPED(earlier_release) struct earlier earlier = earlier_than(sweep, trial);
    bool is_new = !has_record(&earlier, record);
    for (int64_t attempt = 0; attempt < attempts && !is_new; attempt++) {
        struct draw draw = draw_again(attempt);
        free(record);
        record = record_of(sweep, trial, &draw);
        is_new = !has_record(&earlier, record);
    }
    return record;
}

bool suggestion_is_to_record(const struct training_sweep *sweep, int64_t trial, const char *record)
{
    SCOPED_FREE char *drawn = record_of(sweep, trial, &(struct draw){.point = NULL});
    return sweep_values_are_recorded(sweep) || (sweep->algorithm.type == SWEEP_RANDOM && strcmp(record, drawn) != 0);
}
