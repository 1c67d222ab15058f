/* SPDX-License-Identifier: Apache-2.0
 *
 * Applies one change to a TrainingJob or a TrainingSweep, written by the user as "spec.coxswain.training.steps=100" (cox run --set).
 *
 *     PATH=VALUE    sets a field
 *     PATH=null     removes a field, so that its default applies
 *
 * PATH begins with spec or metadata; names are joined by dots (a dot within a name is written \.). `[0]` is an element of a list by its
 * index, `[ps]` by its name; the index after the last element appends one. The table of fields (common/job/fields.h) gives each field's
 * type: strings, decimals, enums and times are taken literally, all other values are parsed as YAML, such as {name: evaluator} or [0, 1].
 * The changed job is not validated here; the API server does that.
 */
#ifndef COXSWAIN_CLI_JOB_SETTING_H
#define COXSWAIN_CLI_JOB_SETTING_H

#include "common/json.h"

#define JOB_SETTING_MAX (64 * 1024)

/* Applies a setting. ERROR_INVALID quotes the path and says what is allowed there; `job` may then be partly changed. */
int job_setting_apply(struct json *job, const char *setting, struct error *error);
/* Returns whether a setting is that of the field with this path, written in the same way. */
bool job_setting_has_path(const char *setting, const char *path);

/* Checks that each `path` of a TrainingSweep's parameters is a field of a job that holds one value, and that the template has the list
 * elements that it names; that the field takes each of `values`; and that a whole number is not drawn from `uniform` or `logUniform`.
 * ERROR_INVALID names the path and says what is allowed there. Other mistakes are left to the API server. */
int job_setting_check_parameters(const struct json *sweep, struct error *error);

/* Calls `take` with every PATH of the table below spec, in the table's order, with [0] for list elements. */
void job_setting_paths(void (*take)(void *context, const char *path), void *context);

#endif
