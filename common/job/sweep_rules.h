/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the rules about a TrainingSweep. Each function returns whether `self` satisfies the rule; `old` is not
 * used. The table in rules.c, which calls them, has each rule's CEL expression and message. The comments below say
 * what a rule demands.
 */
#ifndef COXSWAIN_JOB_SWEEP_RULES_H
#define COXSWAIN_JOB_SWEEP_RULES_H

#include <stdbool.h>

#include "common/json.h"

/* `self` is a range of a parameter. */

/* uniform, logUniform: min < max. */
bool sweep_rule_range(const struct json *self, const struct json *old);
/* integer: min <= max. */
bool sweep_rule_integers(const struct json *self, const struct json *old);

/* integer with scale Log: min is positive … */
bool sweep_rule_log_integers(const struct json *self, const struct json *old);
/* … and step is 1. */
bool sweep_rule_integer_step(const struct json *self, const struct json *old);

/* `self` is a parameter. */

/* It sets exactly one of path, env and arg … */
bool sweep_rule_target(const struct json *self, const struct json *old);
/* … to values from exactly one of values, uniform, logUniform and integer. */
bool sweep_rule_source(const struct json *self, const struct json *old);

/* `self` is the spec. */

/* A metric other than a loss has a goal. */
bool sweep_rule_goal(const struct json *self, const struct json *old);
/* No two parameters have the same path, env or arg. */
bool sweep_rule_targets_differ(const struct json *self, const struct json *old);
/* A parameter's `when` names another parameter of the sweep … */
bool sweep_rule_when_known(const struct json *self, const struct json *old);
/* … that stands before it in the list … */
bool sweep_rule_when_earlier(const struct json *self, const struct json *old);
/* … and only values that this one can have. */
bool sweep_rule_when_values(const struct json *self, const struct json *old);
/* Grid: every parameter has values or integer. */
bool sweep_rule_grid(const struct json *self, const struct json *old);
/* Grid without maxTrials: at most SWEEP_TRIALS_MAX points. */
bool sweep_rule_grid_size(const struct json *self, const struct json *old);
/* Other algorithms have maxTrials. */
bool sweep_rule_endless(const struct json *self, const struct json *old);
/* TPE, PBT or earlyStopping: maxTrials is at most SWEEP_RECORDED_TRIALS_MAX, since the status keeps more of each trial. */
bool sweep_rule_recorded_trials(const struct json *self, const struct json *old);
/* Grid with earlyStopping: at most SWEEP_RECORDED_TRIALS_MAX points. */
bool sweep_rule_recorded_grid(const struct json *self, const struct json *old);
/* PBT (population-based training): every parameter is a field that may change at a checkpoint, without `when`. */
bool sweep_rule_population_parameters(const struct json *self, const struct json *old);
/* PBT: a momentum is 0 in all trials or in none. */
bool sweep_rule_population_momentum(const struct json *self, const struct json *old);
/* PBT: no earlyStopping. */
bool sweep_rule_population_stopping(const struct json *self, const struct json *old);
/* PBT: maxTrials gives at least two generations … */
bool sweep_rule_generations(const struct json *self, const struct json *old);
/* … and whole ones. */
bool sweep_rule_whole_generations(const struct json *self, const struct json *old);
/* Hyperband: there are enough trials for one round of all brackets. */
bool sweep_rule_round(const struct json *self, const struct json *old);

#endif
