/* SPDX-License-Identifier: Apache-2.0
 *
 * Lets Kueue, which gives jobs quota from queues, admit jobs: a job with the label
 * kueue.x-k8s.io/queue-name has pods only while its Workload is admitted. Until then, and after an
 * eviction, the job is suspended as with spec.suspend, which is not changed: the status says first
 * that pods are to be removed, then they are deleted, then the quota is released. suspend.c and
 * plan_job.c call these functions. If Kueue's objects cannot be seen, a job that runs continues to run.
 *
 * A job with the label kueue.x-k8s.io/prebuilt-workload-name is a copy that MultiKueue has created in this cluster, as it created its
 * Workload before: the operator makes the job that Workload's owner, and leaves its deletion to MultiKueue.
 */
#ifndef COXSWAIN_CONTROLLER_QUEUE_PLAN_H
#define COXSWAIN_CONTROLLER_QUEUE_PLAN_H

#include "operator/controller/plan/planning.h"

/* The job's Workloads that exist and are not being deleted; NULL: there is none. An elastic job may have two (queue_slice_name): while it
 * runs with the quota of the one, the other asks for more. When Kueue admits that one, it finishes the first. In the moment between the
 * two, and no longer, the first one counts as if it had its quota still. */
struct queue_workloads {
    const struct workload_view *holder;  /* by which the job has quota, or asks for it */
    const struct workload_view *growth;  /* is to replace that one, and waits */
    const struct workload_view *surplus; /* was replaced, and is to be deleted */
};
struct queue_workloads queue_workloads_of(const struct queue_input *queue, const char *job_uid, int64_t now_ms);

/* Returns for how many more workers the job waits while it runs, and why; NULL: for none. */
const char *queue_growth_waits(struct planning *planning);

/* Returns whether the job may have pods. If not, `ret_reason` and `ret_message` say why. */
bool queue_admits(struct planning *planning, const char **ret_reason, const char **ret_message);

/* Notes in the next status to how many workers Kueue has admitted an elastic job; the job's next plan has no more than these. Returns
 * whether the status has to be written for that before anything else. suspend.c removes the number once no pod is left. */
bool queue_take_admission(struct planning *planning);

/* Returns whether a Workload is to be created for the job, or taken from MultiKueue. */
bool queue_lacks_workload(const struct planning *planning);

/* Returns whether Kueue has chosen the nodes of the job's pods; it chooses the same ones for their successors. */
bool queue_pins_nodes(const struct planning *planning);

/* Deletes the Workload of a suspended job, which releases its quota. Call it only once no pod is
 * left. */
void queue_dismiss(struct planning *planning);
/* Creates, replaces or updates the Workload of a job that wants to run. `suspended`: the status
 * says that the job is suspended, and no pod is left. */
void queue_keep(struct planning *planning, bool suspended);
/* Updates the Workload's conditions if the next status requires it. At the end of the job, deletes the other one. */
void queue_report(struct planning *planning);

/* Returns whether Kueue sends the job to another cluster (MANAGED_BY_MULTIKUEUE). */
bool queue_is_delegated(const struct training_job *job);
/* Plans the Workload of a job that Kueue sends to another cluster (queue_is_delegated); here the job has nothing else. Kueue creates a copy
 * of the job in the cluster that it chooses, and writes the copy's status into this job's status. Returns false if the job may not run
 * there now, because it waits, was evicted or is suspended; the caller then writes `ret_reason` and `ret_why` into the status. Returns true
 * if there is nothing to write: the job may run, has ended, is being deleted, or is invalid. */
bool queue_delegate(struct planning *planning, const char **ret_reason, const char **ret_why);

#endif
