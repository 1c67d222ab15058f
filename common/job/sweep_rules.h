/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the C functions of the rules about a TrainingSweep. The table of rules (rules.h) has their CEL expressions and messages, and
 * only its file, rules.c, calls the functions.
 */
#ifndef COXSWAIN_JOB_SWEEP_RULES_H
#define COXSWAIN_JOB_SWEEP_RULES_H

#include <stdbool.h>

#include "common/json.h"

/* About ranges. */
bool sweep_rule_range(const struct json *self, const struct json *old);
bool sweep_rule_integers(const struct json *self, const struct json *old);

/* About a parameter. */
bool sweep_rule_target(const struct json *self, const struct json *old);
bool sweep_rule_source(const struct json *self, const struct json *old);

/* About the spec. */
bool sweep_rule_targets_differ(const struct json *self, const struct json *old);
bool sweep_rule_when_known(const struct json *self, const struct json *old);
bool sweep_rule_when_earlier(const struct json *self, const struct json *old);
bool sweep_rule_when_values(const struct json *self, const struct json *old);
bool sweep_rule_grid(const struct json *self, const struct json *old);
bool sweep_rule_grid_size(const struct json *self, const struct json *old);
bool sweep_rule_endless(const struct json *self, const struct json *old);
bool sweep_rule_recorded_trials(const struct json *self, const struct json *old);
bool sweep_rule_recorded_grid(const struct json *self, const struct json *old);
bool sweep_rule_population_parameters(const struct json *self, const struct json *old);
bool sweep_rule_population_momentum(const struct json *self, const struct json *old);
bool sweep_rule_population_stopping(const struct json *self, const struct json *old);
bool sweep_rule_generations(const struct json *self, const struct json *old);
bool sweep_rule_whole_generations(const struct json *self, const struct json *old);
bool sweep_rule_round(const struct json *self, const struct json *old);

#endif
