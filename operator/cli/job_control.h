/* SPDX-License-Identifier: Apache-2.0
 *
 * Suspends, resumes, scales and restarts jobs, for the commands of those names and the page of `cox ui`. Each function sends its request
 * and does not wait for pods to come or go.
 */
#ifndef COXSWAIN_CLI_JOB_CONTROL_H
#define COXSWAIN_CLI_JOB_CONTROL_H

#include "operator/cli/job_await.h"

/* Sets spec.suspend: the operator then removes or creates the pods. */
int job_suspend(struct cluster *cluster, const char *name, bool suspend, struct error *error);
/* Sets spec.suspend of a TrainingSweep, which then suspends or resumes its trials. */
int sweep_suspend(struct cluster *cluster, const char *name, bool suspend, struct error *error);
/* Sets the job's number of workers by its subresource scale. The API server refuses a job that is not elastic, and a number out of its
 * bounds. */
int job_scale(struct cluster *cluster, const char *name, int64_t workers, struct error *error);

/* A restart starts the whole crew over from its last checkpoint: job_restart_check, job_suspend (true), and once job_restart_question says
 * AWAIT_HOLDS, job_suspend (false). The timeout is longer than the grace period of any usual pod. */
#define JOB_RESTART_TIMEOUT_MS 300000
/* Refuses a job that is over, since a restart would remove the pods kept for their logs, or one that a user has suspended. */
int job_restart_check(struct cluster *cluster, const char *name, struct error *error);
/* An await_question without a context. AWAIT_HOLDS: all pods are gone; AWAIT_NEVER: the job is over or gone. */
enum await_end job_restart_question(const struct json *job, const void *context);

#endif
