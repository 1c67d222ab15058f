/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the conditions in the status of a job, given as JSON.
 */
#ifndef COXSWAIN_CLI_JOB_CONDITION_H
#define COXSWAIN_CLI_JOB_CONDITION_H

#include <stdbool.h>

#include "common/json.h"

/* Returns the condition of that type; NULL if the status has none. Borrowed from the job. */
const struct json *job_condition(const struct json *job, const char *type);
bool job_condition_true(const struct json *job, const char *type);
/* The job in one word: the type of the first condition that is True, as in kubectl's column STATE,
 * or Suspending while the pods of a job that is being suspended end. "" when the operator has
 * written no status yet. Borrowed from the job or static. */
const char *job_state(const struct json *job);
/* The operator has not looked at its spec as it stands: what the conditions say may be about to
 * change. False for a job without a status, which no operator has looked at at all. */
bool job_has_news(const struct json *job);
/* Succeeded, failed, or gone (NULL). */
bool job_is_over(const struct json *job);

#endif
