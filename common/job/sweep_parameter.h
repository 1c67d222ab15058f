/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts the values of a sweep's parameters into the spec of a TrainingJob, and finds them there again. A sweep runs many jobs, its trials,
 * which differ in its parameters: fields of the spec, environment variables or arguments of the pods. The operator builds trials with these functions,
 * `cox` shows them. A value is a number, a string or a boolean; json_scalar_text gives its text, which the sweep's status contains.
 */
#ifndef COXSWAIN_JOB_SWEEP_PARAMETER_H
#define COXSWAIN_JOB_SWEEP_PARAMETER_H

#include "common/job/training_sweep.h"

/* Returns the parameter's path, variable or argument. Borrowed. */
const char *sweep_parameter_name(const struct sweep_parameter *parameter);

/* Puts a value at the parameter's path in `spec`, or into its variable of the container that trains, or behind the arguments of that
 * container, in the pods of all roles.
 * ERROR_INVALID: the path leads nowhere; `spec` may then be partly changed. */
int sweep_parameter_put(const struct sweep_parameter *parameter, const struct json *value, struct json *spec,
                        struct error *error);

/* Returns the text of the value that stands there; NULL: none. Free with free(). */
char *sweep_parameter_find(const struct sweep_parameter *parameter, const struct json *spec);

/* Returns the text of the value that a parameter has in the best trial; NULL if none is noted. */
const char *sweep_best_value(const struct sweep_best *best, const char *name);

/* Returns the value of the parameter that has that text; NULL: it has none. Free with json_free. */
struct json *sweep_parameter_value(const struct sweep_parameter *parameter, const char *text);

#endif
