/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/population.h"

#include <math.h>
#include <stdlib.h>

#include "common/job/sweep_value.h"
#include "common/memory.h"
#include "operator/controller/sweep/ranked_trial.h"

#define PARTS 5 /* the worst fifth is replaced by the best */
#define RESAMPLE_PROBABILITY 0.25
#define LESS 0.8
#define MORE 1.2

/* What is drawn for a trial; number 0 is the value itself (sweep_drawn_value). */
enum { DRAW_RESAMPLE = 1, DRAW_DIRECTION = 2, DRAW_PARENT = 3 };

bool population_is_used(const struct training_sweep *sweep)
{
    return sweep->algorithm.type == SWEEP_PBT;
}

int64_t population_generation(const struct training_sweep *sweep, int64_t trial)
{
    return trial / sweep->algorithm.population;
}

bool population_may_start(const struct training_sweep *sweep, const struct trial_record *results, int64_t trial)
{
    int64_t end = population_generation(sweep, trial) * sweep->algorithm.population;
    for (int64_t i = end > 0 ? end - sweep->algorithm.population : 0; i < end; i++)
        if (results[i].state == TRIAL_RUNNING)
            return false;
    return true;
}

/* The trials of a generation that succeeded, the best one first. Returns their number; free `ret_trials` with free(). */
static int64_t rank(const struct training_sweep *sweep, const struct trial_record *results, int64_t generation,
                    struct ranked_trial **ret_trials)
{
    int64_t first = generation * sweep->algorithm.population, count = 0;
    struct ranked_trial *trials = memory_allocate((size_t)sweep->algorithm.population, sizeof *trials);
    for (int64_t i = first; i < first + sweep->algorithm.population; i++) {
        double value =
            results[i].state == TRIAL_SUCCEEDED && results[i].objective ? strtod(results[i].objective, NULL) : NAN;
        if (!isnan(value))
            trials[count++] = (struct ranked_trial){sweep->objective.goal == GOAL_MAXIMIZE ? -value : value, i};
    }
    ranked_trials_sort(trials, (size_t)count);
    *ret_trials = trials;
    return count;
}

int64_t population_parent(const struct training_sweep *sweep, const struct trial_record *results, int64_t trial)
{
    int64_t generation = population_generation(sweep, trial), member = trial - sweep->algorithm.population;
    SCOPED_FREE struct ranked_trial *trials = NULL;
    int64_t count = generation > 0 ? rank(sweep, results, generation - 1, &trials) : 0, place = 0;
    if (count == 0)
        return FIELD_UNSET;
    int64_t part = count >= PARTS ? count / PARTS : 1;
    while (place < count && trials[place].trial != member)
        place++;
    if (place < count - part || count == 1)
        return place < count ? member : trials[0].trial;
    double drawn = sweep_draw(sweep, SWEEP_PARAMETERS_MAX, trial, DRAW_PARENT);
    return trials[(int64_t)(drawn * (double)part)].trial;
}

/* A neighbour in the list, or the number below or above; at an end the only one that there is. */
static double neighbour(double number, double first, double last, double step, bool up)
{
    bool rises = (up && number < last) || number <= first;
    return fmin(fmax(number + (rises ? step : -step), first), last);
}

/* Within the parameter's bounds. */
static double scale(const struct sweep_parameter *parameter, double number, bool up)
{
    double scaled = number * (up ? MORE : LESS);
    SCOPED_JSON *value =
        sweep_value_of_number(parameter, parameter->has_integer ? round(scaled) : sweep_round(parameter, scaled));
    return json_number(value, number);
}

/* A parent at a bound would have an exact duplicate: then the other direction is taken. */
static double perturb(const struct sweep_parameter *parameter, double number, bool up)
{
    if (parameter->values)
        return neighbour(number, 0, (double)json_count(parameter->values) - 1, 1, up);
    double scaled = scale(parameter, number, up);
    if (scaled == number)
        scaled = scale(parameter, number, !up);
    if (scaled != number || !parameter->has_integer)
        return scaled;
    return neighbour(number, (double)parameter->integer.min, (double)sweep_integer_last(parameter),
                     (double)sweep_integer_step(parameter), up);
}

struct json *population_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial)
{
    const struct sweep_status *status = &sweep->status;
    int64_t parent = trial < status->result_count ? status->results[trial].parent : FIELD_UNSET;
    double number;
    if (parent == FIELD_UNSET || !sweep_recorded_number(sweep, parameter, parent, &number))
        return sweep_drawn_value(sweep, parameter, trial);
    bool is_fork = parent != trial - sweep->algorithm.population;
    if (is_fork && sweep_draw(sweep, parameter, trial, DRAW_RESAMPLE) < RESAMPLE_PROBABILITY)
        return sweep_drawn_value(sweep, parameter, trial);
    bool up = sweep_draw(sweep, parameter, trial, DRAW_DIRECTION) >= 0.5;
    return sweep_value_of_number(&sweep->parameters[parameter],
                                 is_fork ? perturb(&sweep->parameters[parameter], number, up) : number);
}
