/* SPDX-License-Identifier: Apache-2.0
 *
 * What is written for Kueue: the Workload of a job, what its conditions are told,
 * and what the flavors that were assigned mean for a pod.
 */
#ifndef COXSWAIN_CONTROLLER_QUEUE_BUILD_H
#define COXSWAIN_CONTROLLER_QUEUE_BUILD_H

#include "operator/controller/objects/pod_build.h"
#include "operator/controller/observed/optional_api.h"
#include "operator/controller/observed/workload_view.h"

#define KUEUE_GROUP "kueue.x-k8s.io"
#define WORKLOAD_PLURAL "workloads"
#define FLAVOR_PLURAL "resourceflavors"

/* `version` is that of Kueue's API; `priority` the value of the job's PriorityClass, 0 without one. */
int queue_build_workload(const struct pod_builder *builder, const char *version, int64_t priority,
                         struct json **ret_workload, struct error *error);

/* What PodsReady is to be for a Workload in this state, as Kueue's own integrations set it. Kueue counts its timeout for a
 * start (reason WaitForStart) from the admission, and its timeout for a recovery (WaitForRecovery) from the moment at which
 * a crew that was ready stopped being so. Whether the crew was ready since the admission shows in the condition that the
 * Workload has, so the operator may have been restarted in between. */
struct pods_ready {
    bool ready;
    const char *reason;
};
struct pods_ready queue_pods_ready(const struct workload_view *view, const struct job_status *status);

/* Configurations for server-side apply of the Workload's status. */
struct json *queue_build_status(const struct training_job *job, const char *version, const struct workload_view *view,
                                const struct job_status *status, int64_t now_ms);
struct json *queue_build_release(const struct training_job *job, const char *version, const struct workload_view *view,
                                 int64_t now_ms);

/* Where the pods of each role belong and how they are marked,
 * {"worker":{"nodeSelector":{},"tolerations":[],"labels":{},"annotations":{}}}, from the Workload's assignments and
 * the flavors that `flavor_of` finds. NULL: one of them is not known; `ret_missing` is its name, free with free(). */
typedef const char *queue_flavor(void *context, const char *name);
struct json *queue_placement(const struct workload_view *view, queue_flavor *flavor_of, void *context,
                             char **ret_missing);
/* Sends a pod there, and marks it; `placement` NULL: anywhere. A label that it has stays what it is. */
void queue_place(struct json *pod, enum role role, const struct json *placement);

#endif
