/* SPDX-License-Identifier: Apache-2.0
 *
 * Restarts jobs for the page of `cox ui`: suspends a job, and resumes it once its pods are gone. A job that somebody else resumes, or whose
 * pods are not gone in time, is left as it is. When `cox ui` ends, jobs that wait for their pods stay suspended.
 */
#ifndef COXSWAIN_CLI_UI_RESTARTS_H
#define COXSWAIN_CLI_UI_RESTARTS_H

#include "operator/cli/cluster.h"

struct ui_restarts;

struct ui_restarts *ui_restarts_new(void);
void ui_restarts_free(struct ui_restarts *restarts);

/* Suspends a job of the cluster's namespace, and keeps it; does nothing if it is being restarted already. `run`: the run of this machine
 * that the job belongs to; "": it is a cluster's. Makes blocking requests. */
int ui_restarts_begin(struct ui_restarts *restarts, struct cluster *cluster, const char *run, const char *name,
                      struct error *error);
/* Returns whether the job of that run and namespace is being restarted. */
bool ui_restarts_has(const struct ui_restarts *restarts, const char *run, const char *name_space, const char *name);
/* Resumes jobs whose pods are gone. Call it after each turn of the loop; it reads each job twice a second, by blocking requests. Before
 * that, `enter` makes `cluster` that of the job's run; it returns false if the run has ended. NULL: there are no runs. */
void ui_restarts_work(struct ui_restarts *restarts, struct cluster *cluster,
                      bool (*enter)(void *context, const char *run), void *context);

#endif
