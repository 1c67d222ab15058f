/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts the whole crew of a job over from its last checkpoint, for `cox restart` and the page of `cox ui`: job_restart_check, then
 * job_suspend (true), and once job_restart_question says AWAIT_HOLDS, job_suspend (false).
 */
#ifndef COXSWAIN_CLI_JOB_RESTART_H
#define COXSWAIN_CLI_JOB_RESTART_H

#include "operator/cli/job_await.h"

/* Longer than the grace period of any usual pod. */
#define JOB_RESTART_TIMEOUT_MS 300000

/* Refuses a job that is over, since a restart would remove the pods kept for their logs, or one that a user has suspended. */
int job_restart_check(struct cluster *cluster, const char *name, struct error *error);
/* An await_question without a context. AWAIT_HOLDS: all pods are gone; AWAIT_NEVER: the job is over or gone. */
enum await_end job_restart_question(const struct json *job, const void *context);

#endif
