/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads from Kueue's objects what the plan of a job needs: from the job's Workload its owner, its
 * conditions and the flavors assigned to its pod sets (the pods of one role each), and from a
 * ResourceFlavor its node labels and tolerations. The informers' caches keep these views and not
 * the JSON.
 */
#ifndef COXSWAIN_CONTROLLER_WORKLOAD_VIEW_H
#define COXSWAIN_CONTROLLER_WORKLOAD_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/json.h"

/* A single allocation; free with free(). Absent strings are "". */
struct workload_view {
    const char *name, *uid, *owner_uid, *job_uid; /* owner_uid: of its controller (owner.h); job_uid: from its label */
    const char *queue_name;
    const char *waiting;        /* Kueue's message why it is not admitted */
    const char *evicted_reason; /* "Preempted", … */
    const char *evicted_message;
    /* JSON, by pod set:
     * {"worker":{"flavors":["spot"],"nodeSelector":{},"labels":{},"annotations":{},"tolerations":[]}}
     */
    const char *assignments;
    bool deleting, has_admission;
    bool reserved, admitted, evicted, finished; /* conditions that are True */
    bool replaced;                 /* Kueue has finished it to admit another Workload of the job in its place */
    int64_t slice;                 /* how many of the job's Workloads were replaced before it */
    bool pods_ready;               /* PodsReady is True */
    const char *pods_ready_reason; /* "WaitForStart", …; "": the Workload has no PodsReady yet */
    bool has_topology;             /* Kueue has chosen topology domains for a pod set */
    bool pins_nodes; /* Kueue has chosen a node for each pod of a pod set: the lowest level of the topology are nodes */
    /* Pods of the pod set of workers: for how many the spec asks, with how few it is content (minCount), and how many have quota; 0:
     * none. */
    int64_t workers, least_workers, admitted_workers;
};
struct workload_view *workload_view_new(const struct json *workload);

/* Returns a ResourceFlavor's placement as JSON text, {"nodeSelector":{},"tolerations":[]}; free
 * with free(). */
char *flavor_view_new(const struct json *flavor);

#endif
