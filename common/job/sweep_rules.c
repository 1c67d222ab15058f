/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/sweep_rules.h"

#include <math.h>
#include <string.h>

#include "common/job/rule_values.h"
#include "common/job/string_format.h"
#include "common/job/sweep_bracket.h"
#include "common/job/training_sweep.h"

/* A number, or one in quotes. */
static double decimal_at(const struct json *self, const char *name)
{
    const struct json *value = json_member(self, name);
    const char *text = json_string(value, NULL);
    return text ? decimal_value(text) : json_number(value, 0);
}

bool sweep_rule_range(const struct json *self, const struct json *old)
{
    (void)old;
    return decimal_at(self, "min") < decimal_at(self, "max");
}

bool sweep_rule_integers(const struct json *self, const struct json *old)
{
    (void)old;
    return json_integer_at(self, "min", 0) <= json_integer_at(self, "max", 0);
}

static bool is_logarithmic(const struct json *self)
{
    return rule_is(self, "scale", "Log");
}

bool sweep_rule_log_integers(const struct json *self, const struct json *old)
{
    (void)old;
    return !is_logarithmic(self) || json_integer_at(self, "min", 0) >= 1;
}

bool sweep_rule_integer_step(const struct json *self, const struct json *old)
{
    (void)old;
    return !is_logarithmic(self) || json_integer_at(self, "step", 1) == 1;
}

bool sweep_rule_target(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_has(self, "path") + rule_has(self, "env") + rule_has(self, "arg") == 1;
}

bool sweep_rule_source(const struct json *self, const struct json *old)
{
    (void)old;
    return rule_has(self, "values") + rule_has(self, "uniform") + rule_has(self, "logUniform") +
               rule_has(self, "integer") ==
           1;
}

static bool is_loss(const char *metric)
{
    size_t length = strlen(metric);
    return length >= 4 && (strcmp(metric + length - 4, "loss") == 0 || strcmp(metric + length - 4, "Loss") == 0);
}

bool sweep_rule_goal(const struct json *self, const struct json *old)
{
    (void)old;
    return json_at(self, "objective.goal") || is_loss(json_string_at(self, "objective.metric", "loss"));
}

static const char *const targets[] = {"path", "env", "arg"};

static bool is_same_target(const struct json *one, const struct json *other)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        const struct json *target = json_member(one, targets[i]);
        if (target && json_equal(target, json_member(other, targets[i])))
            return true;
    }
    return false;
}

bool sweep_rule_targets_differ(const struct json *self, const struct json *old)
{
    (void)old;
    const struct json *list = json_member(self, "parameters");
    for (const struct json *item = json_first(list); item; item = json_next(item))
        for (const struct json *earlier = json_first(list); earlier != item; earlier = json_next(earlier))
            if (is_same_target(earlier, item))
                return false;
    return true;
}

static bool is_named(const struct json *parameter, const struct json *name)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (json_equal(json_member(parameter, targets[i]), name))
            return true;
    return false;
}

/* The parameter of that path, variable or argument among those before `end`, NULL: among all; NULL: there is none. */
static const struct json *parameter_named(const struct json *list, const struct json *end, const struct json *name)
{
    for (const struct json *item = json_first(list); item != end; item = json_next(item))
        if (name && is_named(item, name))
            return item;
    return NULL;
}

bool sweep_rule_when_known(const struct json *self, const struct json *old)
{
    (void)old;
    const struct json *list = json_member(self, "parameters");
    for (const struct json *item = json_first(list); item; item = json_next(item)) {
        const struct json *name = json_at(item, "when.parameter");
        if (name && !parameter_named(list, NULL, name))
            return false;
    }
    return true;
}

bool sweep_rule_when_earlier(const struct json *self, const struct json *old)
{
    (void)old;
    const struct json *list = json_member(self, "parameters");
    for (const struct json *item = json_first(list); item; item = json_next(item)) {
        const struct json *name = json_at(item, "when.parameter");
        if (name && parameter_named(list, NULL, name) && !parameter_named(list, item, name))
            return false;
    }
    return true;
}

static bool can_have(const struct json *parameter, const struct json *value)
{
    const struct json *integer = json_member(parameter, "integer"), *values = json_member(parameter, "values");
    double number = json_number(value, 0), min = json_number_at(integer, "min", 0);
    if (integer)
        return json_type(value) == JSON_NUMBER && number == floor(number) && number >= min &&
               number <= json_number_at(integer, "max", 0) &&
               fmod(number - min, json_number_at(integer, "step", 1)) == 0;
    const struct json *known = json_first(values);
    while (known && !json_equal(known, value))
        known = json_next(known);
    return known != NULL;
}

bool sweep_rule_when_values(const struct json *self, const struct json *old)
{
    (void)old;
    const struct json *list = json_member(self, "parameters");
    for (const struct json *item = json_first(list); item; item = json_next(item)) {
        const struct json *other = parameter_named(list, item, json_at(item, "when.parameter"));
        const struct json *values = json_at(item, "when.values");
        for (const struct json *value = json_first(values); other && value; value = json_next(value))
            if (!can_have(other, value))
                return false;
    }
    return true;
}

static bool is_grid(const struct json *self)
{
    return rule_is(self, "algorithm.type", "Grid");
}

bool sweep_rule_grid(const struct json *self, const struct json *old)
{
    (void)old;
    return !is_grid(self) || sweep_grid_size(self) > 0;
}

bool sweep_rule_grid_size(const struct json *self, const struct json *old)
{
    (void)old;
    return !is_grid(self) || rule_has(self, "maxTrials") || sweep_grid_size(self) <= SWEEP_TRIALS_MAX;
}

bool sweep_rule_endless(const struct json *self, const struct json *old)
{
    (void)old;
    return is_grid(self) || rule_has(self, "maxTrials");
}

static bool is_population(const struct json *self)
{
    return rule_is(self, "algorithm.type", "PBT");
}

static bool is_recorded(const struct json *self)
{
    return rule_is(self, "algorithm.type", "TPE") || is_population(self) || rule_has(self, "earlyStopping");
}

bool sweep_rule_recorded_trials(const struct json *self, const struct json *old)
{
    (void)old;
    return !is_recorded(self) || json_integer_at(self, "maxTrials", 0) <= SWEEP_RECORDED_TRIALS_MAX;
}

bool sweep_rule_recorded_grid(const struct json *self, const struct json *old)
{
    (void)old;
    return !is_grid(self) || !is_recorded(self) || rule_has(self, "maxTrials") ||
           sweep_grid_size(self) <= SWEEP_RECORDED_TRIALS_MAX;
}

/* How many trials a spec asks for; 0: a Grid that another rule refuses. */
static int64_t trials_of(const struct json *self)
{
    int64_t most = json_integer_at(self, "maxTrials", SWEEP_TRIALS_MAX + 1);
    int64_t points = is_grid(self) ? sweep_grid_size(self) : most;
    return points < most ? points : most;
}

bool sweep_rule_round(const struct json *self, const struct json *old)
{
    (void)old;
    if (!rule_is(self, "earlyStopping.type", "Hyperband"))
        return true;
    int64_t brackets = json_integer_at(self, "earlyStopping.brackets", 0);
    int64_t factor = json_integer_at(self, "earlyStopping.reductionFactor", 0), trials = trials_of(self);
    bool sound = brackets > 0 && brackets <= SWEEP_BRACKETS_MAX && factor > 0 && factor <= SWEEP_TRIALS_MAX;
    return !sound || trials == 0 || trials >= sweep_round_size(brackets, factor);
}

/* Whether a job may go on from the checkpoint of a job that has another value at the path. It may not with another schedule, which depends
 * on the number of steps. */
static bool may_change(const char *path)
{
    static const char optimizer[] = "coxswain.training.optimizer.", schedule[] = "coxswain.training.optimizer.schedule";
    if (strncmp(path, optimizer, sizeof optimizer - 1) == 0)
        return strcmp(path, "coxswain.training.optimizer.type") != 0 &&
               strncmp(path, schedule, sizeof schedule - 1) != 0;
    return strcmp(path, "coxswain.training.batchSize") == 0 ||
           strcmp(path, "coxswain.training.perReplicaBatchSize") == 0;
}

bool sweep_rule_population_parameters(const struct json *self, const struct json *old)
{
    (void)old;
    const struct json *list = json_member(self, "parameters");
    for (const struct json *item = json_first(list); is_population(self) && item; item = json_next(item))
        if (!may_change(json_string_at(item, "path", "")) || rule_has(item, "when"))
            return false;
    return true;
}

static bool is_zero(const struct json *value)
{
    const char *text = json_string(value, NULL);
    double number = json_number(value, 1);
    return (!text || finite_number(text, &number)) && number == 0;
}

/* Whether 0 is one of several values; those of a range are never exactly 0. */
static bool has_zero_among_others(const struct json *parameter)
{
    const struct json *integer = json_member(parameter, "integer"), *values = json_member(parameter, "values");
    if (integer)
        return json_number_at(integer, "min", 1) <= 0 && json_number_at(integer, "max", 0) > 0;
    const struct json *value = json_count(values) > 1 ? json_first(values) : NULL;
    while (value && !is_zero(value))
        value = json_next(value);
    return value != NULL;
}

bool sweep_rule_population_momentum(const struct json *self, const struct json *old)
{
    (void)old;
    const struct json *list = json_member(self, "parameters");
    for (const struct json *item = json_first(list); is_population(self) && item; item = json_next(item))
        if (strcmp(json_string_at(item, "path", ""), "coxswain.training.optimizer.momentum") == 0 &&
            has_zero_among_others(item))
            return false;
    return true;
}

bool sweep_rule_population_stopping(const struct json *self, const struct json *old)
{
    (void)old;
    return !is_population(self) || !rule_has(self, "earlyStopping");
}

bool sweep_rule_generations(const struct json *self, const struct json *old)
{
    (void)old;
    int64_t population = json_integer_at(self, "algorithm.population", 0);
    return !is_population(self) || !rule_has(self, "maxTrials") ||
           json_integer_at(self, "maxTrials", 0) >= 2 * population;
}

bool sweep_rule_whole_generations(const struct json *self, const struct json *old)
{
    (void)old;
    int64_t population = json_integer_at(self, "algorithm.population", 0);
    return !is_population(self) || population <= 0 || json_integer_at(self, "maxTrials", 0) % population == 0;
}
