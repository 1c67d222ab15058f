/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps a job's view current from the cluster: watches the TrainingJob and its
 * pods, and reads the chief's log through the API as long as there is one.
 */
#ifndef COXSWAIN_CLI_JOB_FOLLOW_H
#define COXSWAIN_CLI_JOB_FOLLOW_H

#include "operator/cli/job_view.h"
#include "operator/cli/terminal.h"
#include "operator/kube/client.h"

struct job_follow;

/* `changed` is called from the loop after each change of `view`, which must outlive it. */
struct job_follow *job_follow_start(struct kube_client *client, struct job_view *view, void (*changed)(void *context),
                                    void *context);
/* -1 when the cluster will not let it watch the job. Pods that may not be seen are not needed: stderr says so once, after
 * `title`, below what stands on the terminal. To be asked at each turn of the loop. */
int job_follow_check(struct job_follow *follow, const char *title, struct terminal *terminal, struct error *error);
/* The job has been deleted; or it is over, and the log of its last chief has been read to its end, or been given up (stderr says so in
 * job_follow_check); or nothing was heard of it for five seconds, where a chief that lives on is not listened to any more. */
bool job_follow_is_over(struct job_follow *follow);
void job_follow_free(struct job_follow *follow);

#endif
