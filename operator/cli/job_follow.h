/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps a job_view (job_view.h) up to date while `cox run` or `cox top NAME` shows a job. Watches the
 * TrainingJob and its pods, streams the log of the chief (the pod that leads the job's other pods) from the
 * API server, and polls the chief's status document. Everything runs on the client's event loop. A stream
 * that is cut is resumed without losing or repeating lines.
 */
#ifndef COXSWAIN_CLI_JOB_FOLLOW_H
#define COXSWAIN_CLI_JOB_FOLLOW_H

#include "operator/cli/job_view.h"
#include "operator/cli/terminal.h"
#include "operator/kube/client.h"

struct job_follow;

/* Starts watching. `changed` is called from the loop after each change of `view`. `client` and
 * `view` must outlive the result. */
struct job_follow *job_follow_start(struct kube_client *client, struct job_view *view, void (*changed)(void *context),
                                    void *context);
/* Returns -1 if the API server refuses to let the job be watched. If it refuses the pods, or if the
 * log cannot be read to its end, prints a warning once, prefixed with `title`, to stderr. Call it
 * on each turn of the loop. */
int job_follow_check(struct job_follow *follow, const char *title, struct terminal *terminal, struct error *error);
/* Returns whether there is nothing more to follow: the job was deleted, or it has finished and its
 * chief's log was read to the end or given up. After the job has finished, gives up on a log that
 * has been silent for five seconds, and after 30 seconds on a chief that keeps running. */
bool job_follow_is_over(struct job_follow *follow);
void job_follow_free(struct job_follow *follow);

#endif
