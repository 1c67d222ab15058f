/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches one TrainingJob or TrainingSweep until a predicate holds for it, for the commands wait, delete and restart. The call
 * blocks: it runs the cluster's event loop until the predicate decides, the time limit passes, or the user
 * interrupts.
 */
#ifndef COXSWAIN_CLI_JOB_AWAIT_H
#define COXSWAIN_CLI_JOB_AWAIT_H

#include "operator/cli/cluster.h"

enum await_end { AWAIT_GOES_ON, AWAIT_HOLDS, AWAIT_NEVER /* it can no longer hold */, AWAIT_TIMEOUT };

/* The predicate, called at least after each change of the job; `job` is NULL if the job does not
 * exist. */
typedef enum await_end await_question(const struct json *job, const void *context);

/* Runs the cluster's loop until the predicate returns something other than AWAIT_GOES_ON, or
 * `timeout_ms` have passed (AWAIT_TIMEOUT; -1: no limit). If interrupted, ends with AWAIT_GOES_ON.
 * Fails if the API server refuses access to jobs (access_check). */
int job_await(struct cluster *cluster, const char *name, await_question *question, const void *context,
              int64_t timeout_ms, enum await_end *ret_end, struct error *error);
/* The same for a sweep. */
int sweep_await(struct cluster *cluster, const char *name, await_question *question, const void *context,
                int64_t timeout_ms, enum await_end *ret_end, struct error *error);

#endif
