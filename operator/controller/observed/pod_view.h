/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads from a pod the few fields by which the operator decides (plan.h). The cache stores these
 * fields compactly (pod_record.h) and does not keep the pod's JSON. A view owns no memory: its
 * strings must not be used after what it was made from has been freed.
 */
#ifndef COXSWAIN_CONTROLLER_POD_VIEW_H
#define COXSWAIN_CONTROLLER_POD_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/job/training_job.h"
#include "common/json.h"

#define POD_PHASES(X)                                                                                                  \
    X(POD_UNKNOWN, "Unknown")                                                                                          \
    X(POD_PENDING, "Pending") X(POD_RUNNING, "Running") X(POD_SUCCEEDED, "Succeeded") X(POD_FAILED, "Failed")
#define X(name, text) name,
enum pod_phase { POD_PHASES(X) };
#undef X

#define EXIT_CODE_NONE (-1)

/* Longer strings are truncated. The API server's limit for termination messages is the same. */
#define POD_TEXT_MAX 4096

/* Absent strings are "", absent times FIELD_UNSET. */
struct pod_view {
    const char *name, *uid;
    const char *job_name;            /* of the job that controls it, else from the label */
    const char *job_uid, *owner_uid; /* from the label; of its controller (owner.h) */
    const char *ip;
    const char *container;        /* the main one's name; "": the pod has no other */
    const char *reason, *message; /* of the pod's end: status.reason "Evicted", … */
    /* These describe the main container, or an init container that has failed or keeps the main one from starting. */
    const char *init_container;                   /* its name; "": the following are the main container's */
    const char *waiting_reason, *waiting_message; /* "ImagePullBackOff", … */
    const char *end_reason, *termination_message; /* "OOMKilled", "StartError", … */
    const char *memory_limit;                     /* as written */
    const char *unschedulable;                    /* the scheduler's message, if it has found no node; "" */
    const char *node;                             /* "": it has none */
    const char *avoided;                          /* the nodes that its affinity excludes, with commas between them */
    const char *disrupted_by; /* of its condition DisruptionTarget: "DeletionByTaintManager", …; "": it has none */
    const char *conditions;   /* only once it has ended or is being deleted: "DisruptionTarget=True\nReady=False\n" */
    int64_t incarnation, attempt, index;
    int64_t created_ms, started_ms, finished_ms;
    int64_t
        startable_ms;    /* since when nothing but itself keeps the container from starting: it has a node, and the init
                             containers before it are done */
    int64_t waiting_ms;  /* since when its container cannot start, in memory only; FIELD_UNSET: it is not waiting */
    int64_t deletion_ms; /* when its deletion was requested: deletionTimestamp minus its grace period */
    int64_t grace_ms;    /* its grace period for deletion; 0 after a forced deletion */
    int exit_code;       /* of that container; EXIT_CODE_NONE until it has ended */
    enum role role;
    enum pod_phase phase;
    bool member;    /* has a known role and an index, and the name that follows from its labels: part of a crew */
    bool adoptable; /* no owner, and its environment agrees with its labels, as an operator would create it */
    bool
        fenced; /* our worker, which is to end and has started: a later job of the same name claims its checkpoint directory, and then
                       it can no longer save */
    bool begun; /* an init container has run: its volumes are there */
    bool current, ready, scheduled, disruption_target;
    bool gated; /* scheduling gates keep the scheduler from looking at it; `unschedulable` says so */
};

/* Reads a pod's JSON object. The view's strings lie in `pod` and in `conditions`, which this
 * function initialises and the caller releases. */
void pod_view_read(const struct json *pod, struct pod_view *ret_view, struct buffer *conditions);

/* Makes the name derived from the pod's job, role, index and incarnation: "digits-worker-3-7".
 * Returns false if it is longer than any name of a pod of ours; the length of job names is limited
 * (JOB_NAME_MAX). */
#define POD_PLACE_NAME_MAX 96 /* includes the NUL */
bool pod_view_name_of_place(const struct pod_view *pod, char ret_name[POD_PLACE_NAME_MAX]);

/* Returns whether the job with this UID controls the pod, whatever its labels say. */
bool pod_view_is_of(const struct pod_view *pod, const char *job_uid);
/* Returns whether the pod has no owner and its labels name that job. */
bool pod_view_is_orphan_of(const struct pod_view *pod, const char *job_uid);
/* Returns whether the pod's labels name a job of another UID, and no other owner controls the pod:
 * usually it belongs to a deleted job of the same name. */
bool pod_view_is_of_another_job(const struct pod_view *pod, const char *job_uid);

/* Returns whether the pod is neither Succeeded nor Failed. A pod that is terminating is alive until
 * it is gone. */
bool pod_view_alive(const struct pod_view *pod);
/* Returns whether the main container, or the pod as a whole, has ended. */
bool pod_view_ended(const struct pod_view *pod);
bool pod_view_deleting(const struct pod_view *pod);
bool pod_view_succeeded(const struct pod_view *pod);
/* Returns whether the image, command or configuration keeps the container from starting; the
 * kubelet keeps trying. */
bool pod_view_waits_in_vain(const struct pod_view *pod);
/* Returns whether the pod succeeded without having been asked to end. Many programs also exit with
 * 0 on SIGTERM. */
bool pod_view_finished(const struct pod_view *pod);
/* Returns whether the pod was ended by something other than its container: a node that was drained
 * or lost, a preemption. Deletion alone is no disruption, because the operator deletes the other
 * pods of a crew that starts over. */
bool pod_view_was_disrupted(const struct pod_view *pod);
/* Returns whether the pod was still running when its deletion was requested. The end is a time of
 * the node's clock, which may be late, so an end shortly before the request counts as after it. */
bool pod_view_was_asked_to_end(const struct pod_view *pod);

#endif
