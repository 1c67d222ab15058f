/* SPDX-License-Identifier: Apache-2.0
 *
 * The conditions in a job's status, as JSON.
 */
#ifndef COXSWAIN_CLI_JOB_CONDITION_H
#define COXSWAIN_CLI_JOB_CONDITION_H

#include <stdbool.h>

#include "common/json.h"

/* NULL when the status has none of that type. */
const struct json *job_condition(const struct json *job, const char *type);
bool job_condition_true(const struct json *job, const char *type);
/* Succeeded, failed, or gone (NULL). */
bool job_is_over(const struct json *job);

#endif
