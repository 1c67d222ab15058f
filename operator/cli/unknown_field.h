/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes refusals of an API server easier to read: leaves out what they repeat, and suggests the fields and words that were probably meant
 * when an API server has refused unknown ones. Nothing is suggested before, because a newer server may know fields that this program does
 * not. The template of a sweep is an exception: the API server takes any fields there, and refuses them in each trial's job only.
 */
#ifndef COXSWAIN_CLI_UNKNOWN_FIELD_H
#define COXSWAIN_CLI_UNKNOWN_FIELD_H

#include <stdbool.h>

#include "common/json.h"

/* Adds suggestions to the server's message: for `unknown field "spec.workers.replica"` the most similar field, or those that
 * stand there if none is similar, and for
 * `Unsupported value: "mirored": supported values: "OneDevice", "Mirrored"` the most similar of the supported values. */
void unknown_field_explain(bool is_sweep, struct error *error);

/* Checks that the table of fields (common/job/fields.h) has each field of a TrainingSweep's template. ERROR_INVALID names the others, as
 * `unknown field "spec.template.coxswian"`, and the most similar fields. */
int unknown_field_check_template(const struct json *sweep, struct error *error);

/* Leaves out of the server's message the resource's type and version, and the second mention of a path: `TrainingJob.coxswain.dev "a" is
 * invalid: spec.b: Invalid value: 0: spec.b in body should be greater than 0` becomes `a: spec.b: 0 should be greater than 0`. `spec.b:
 * Required value` becomes `spec.b is missing; add it`, and regular expressions become words: `should match '^[0-9]+$'` becomes `should be`
 * and what it is. Other messages stay as they are. */
void refusal_shorten(struct error *error);

#endif
