/* SPDX-License-Identifier: Apache-2.0
 *
 * One change to a TrainingJob as a person types it: "spec.coxswain.training.steps=100".
 *
 *     PATH=VALUE    PATH=null takes the field away, so that its default holds
 *
 * PATH begins with spec or metadata; names are joined by dots (a dot within a
 * name is written \.). `[0]` is an element of a list, `[ps]` the one of that
 * name; the place after the last element takes a new one. What a field takes is
 * looked up in the table of fields (common/job/fields.h): texts, decimals, words
 * and durations are taken as they stand, all others read as YAML, such as
 * {name: evaluator} or [0, 1]. Whether the job is good then is the API server's
 * to say.
 */
#ifndef COXSWAIN_CLI_JOB_SETTING_H
#define COXSWAIN_CLI_JOB_SETTING_H

#include "common/json.h"

#define JOB_SETTING_MAX (64 * 1024)

/* ERROR_INVALID quotes the setting and says what could stand there; `job` may be half changed then. */
int job_setting_apply(struct json *job, const char *setting, struct error *error);

/* Every PATH that there is, in the order of the table, with [0] for elements: `take` gets each in turn. */
void job_setting_paths(void (*take)(void *context, const char *path), void *context);

#endif
