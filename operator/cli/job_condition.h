/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the conditions in the status of a TrainingJob, and derives the job's state from them. Commands use
 * these functions on the JSON that the API server returns, so that all of them show the same state.
 */
#ifndef COXSWAIN_CLI_JOB_CONDITION_H
#define COXSWAIN_CLI_JOB_CONDITION_H

#include <stdbool.h>

#include "common/json.h"

#define JOB_INTERRUPTED "Interrupted" /* a condition that no operator sets: job_mark_interrupted */

/* Returns the condition of that type; NULL if the status has none. Borrowed from the job. */
const struct json *job_condition(const struct json *job, const char *type);
bool job_condition_true(const struct json *job, const char *type);
/* Returns the job's state in one word, as in kubectl's column STATE: Suspending while the pods of a
 * suspended job end, otherwise the type of the first condition that is True, otherwise Pending.
 * Returns "" if the status has no conditions yet. Borrowed from the job or static. */
const char *job_state(const struct json *job);
/* Returns the same for people: Diverged instead of Failed if the job's loss became infinite or not a number, as a sweep calls such a
 * trial. */
const char *job_state_shown(const struct json *job);
/* Returns whether the operator has not observed the current generation of the job yet, so that the
 * conditions may be about to change. False if no operator has observed the job at all. */
bool job_has_news(const struct json *job);
/* Changes the copy of a job or sweep that is to be shown, if it is not over but its `cox run` has ended: adds the condition Interrupted,
 * which becomes its state unless a user has suspended it (Suspended), and sets the number of ready pods, or of running trials, to 0. Leaves
 * trials alone that their sweep has suspended. `again`: the command that continues the run; NULL: unknown. */
void job_mark_interrupted(struct json *object, const char *again);
/* Returns whether the job has succeeded, failed or been deleted (NULL); also of a sweep, which is Complete or has failed. */
bool job_is_over(const struct json *job);

#endif
