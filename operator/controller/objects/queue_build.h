/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds what the operator writes for Kueue, which gives jobs quota from queues: the Workload, by
 * which Kueue admits a job, and its conditions. It also applies the flavors that Kueue assigned to
 * the job (node labels and tolerations for each role) to the job's pods. queue_plan.h decides when
 * the Workload is created, updated or deleted.
 */
#ifndef COXSWAIN_CONTROLLER_QUEUE_BUILD_H
#define COXSWAIN_CONTROLLER_QUEUE_BUILD_H

#include "operator/controller/objects/pod_build.h"
#include "operator/controller/observed/optional_api.h"
#include "operator/controller/observed/workload_view.h"

#define KUEUE_GROUP "kueue.x-k8s.io"
#define WORKLOAD_PLURAL "workloads"
#define FLAVOR_PLURAL "resourceflavors"
#define PRIORITY_PLURAL "workloadpriorityclasses"

/* The class whose value is the priority of a job's Workload: the WorkloadPriorityClass of the job's label, which orders jobs in
 * Kueue and nothing else, or else the PriorityClass of its pods. */
struct queue_priority {
    const char *name; /* NULL: the job has neither, and its priority is 0 */
    bool of_kueue;
};
struct queue_priority queue_priority_of(const struct training_job *job);

/* Returns for how many pods of the role the Workload asks. Of an elastic crew Kueue may admit fewer workers (minCount). */
int64_t queue_pods(const struct training_job *job, enum role role);

/* Builds the job's Workload. `version`: of Kueue's API; `priority`: the value of the job's class, 0 without one. */
int queue_build_workload(const struct pod_builder *builder, const char *version, int64_t priority,
                         struct json **ret_workload, struct error *error);

/* Returns with how few workers a Workload that asks for so many would be content; 0: with no fewer. */
int64_t queue_least_workers(const struct training_job *job, int64_t workers);

/* A job has two names for Workloads, its own and this one: one that has quota and one that is to replace it, with more. Free with
 * free(). */
#define QUEUE_SLICE_SUFFIX ".slice"
char *queue_slice_name(const char *job_name);
/* Makes a Workload of queue_build_workload one that asks for so many workers, and that Kueue is to admit in place of `replaced`. */
void queue_make_slice(struct json *workload, const struct training_job *job, const struct workload_view *replaced,
                      int64_t workers);

/* Builds a configuration for server-side apply that sets for how many workers the Workload of an elastic job asks. */
struct json *queue_build_size(const struct training_job *job, const char *version, const char *name, int64_t workers,
                              int64_t least);

/* The condition PodsReady for a Workload in this state, as Kueue's own integrations set it. Kueue
 * counts its timeout for a start (reason WaitForStart) from the admission, and its timeout for a
 * recovery (WaitForRecovery) from the moment at which a crew that was ready stopped being so.
 * Whether the crew was ready since the admission shows in the condition that the Workload has, so
 * the operator may have been restarted in between. */
struct pods_ready {
    bool ready;
    const char *reason;
};
struct pods_ready queue_pods_ready(const struct workload_view *view, const struct job_status *status);

/* Build configurations for server-side apply of the Workload's status: its conditions while the job
 * runs and when it ends, and the release of its quota after an eviction. */
struct json *queue_build_status(const struct training_job *job, const char *version, const struct workload_view *view,
                                const struct job_status *status, int64_t now_ms);
struct json *queue_build_release(const struct training_job *job, const char *version, const struct workload_view *view,
                                 int64_t now_ms);

/* Returns where the pods of each role are placed and how they are labelled,
 * {"worker":{"nodeSelector":{},"tolerations":[],"labels":{},"annotations":{}}}, from the Workload's
 * assignments and the flavors that `flavor_of` finds. NULL: a flavor is not known; `ret_missing` is
 * its name, free with free(). */
typedef const char *queue_flavor(void *context, const char *name);
struct json *queue_placement(const struct workload_view *view, queue_flavor *flavor_of, void *context,
                             char **ret_missing);
/* Applies the placement to a pod of the role; `placement` NULL: does nothing. Does not change
 * labels that the pod has. */
void queue_place(struct json *pod, enum role role, const struct json *placement);

#endif
