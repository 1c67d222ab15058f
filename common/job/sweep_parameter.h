/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the values of a sweep's parameters into the spec of a TrainingJob, and reads them from it. A sweep runs many
 * jobs, its trials, which differ in its parameters: fields of the spec, environment variables or arguments of the pods.
 * The operator builds trials with these functions, and `cox` shows the trials' values with them. A value is a number, a
 * string or a boolean; json_scalar_text gives its text, which the sweep's status contains.
 */
#ifndef COXSWAIN_JOB_SWEEP_PARAMETER_H
#define COXSWAIN_JOB_SWEEP_PARAMETER_H

#include "common/buffer.h"
#include "common/job/training_sweep.h"

/* Returns the parameter's path, variable or argument. Borrowed. */
const char *sweep_parameter_name(const struct sweep_parameter *parameter);

/* Writes a value to the parameter's path in `spec`. For a variable or an argument: sets the variable in the main container
 * of the pods of all roles, or appends NAME=VALUE to that container's arguments. ERROR_INVALID: the path does not exist;
 * `spec` may then be partly changed. */
int sweep_parameter_put(const struct sweep_parameter *parameter, const struct json *value, struct json *spec,
                        struct error *error);

/* Returns the text of the value that the parameter has in `spec`; NULL: none. Free with free(). */
char *sweep_parameter_find(const struct sweep_parameter *parameter, const struct json *spec);

/* Appends the values that the parameters have in `spec`, that of a trial's job: "learningRate 0.1, width 32". Parameters without one are
 * left out; a field is named by the last part of its path. */
void sweep_parameters_print(const struct training_sweep *sweep, const struct json *spec, struct buffer *out);

/* Returns the text of the value that a parameter has in the best trial; NULL if none is noted. */
const char *sweep_best_value(const struct sweep_best *best, const char *name);

/* Converts a value's text back to the value: the one of the parameter's list with that text or, for a parameter without a
 * list, the number. NULL if there is none. Free with json_free. */
struct json *sweep_parameter_value(const struct sweep_parameter *parameter, const char *text);

#endif
