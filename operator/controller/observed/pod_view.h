/* SPDX-License-Identifier: Apache-2.0
 *
 * What the operator knows of a pod: the few fields that its policies read. The
 * cache keeps them in less room (pod_record.h), and the pod's JSON not at all.
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

/* Longer texts are cut; the API keeps no longer termination messages. */
#define POD_TEXT_MAX 4096

/* Absent strings are "", absent times FIELD_UNSET. */
struct pod_view {
    const char *name, *uid;
    const char *job_name;            /* of the job that controls it, else as the label says */
    const char *job_uid, *owner_uid; /* the label; whose it is (owner.h) */
    const char *ip;
    const char *reason, *message; /* of the pod's end: status.reason "Evicted", … */
    /* Of the main container; of an init container where that has failed, or keeps the main one from starting. */
    const char *init_container;                   /* its name; "": the rest is the main container's */
    const char *waiting_reason, *waiting_message; /* "ImagePullBackOff", … */
    const char *end_reason, *termination_message; /* "OOMKilled", "StartError", … */
    const char *memory_limit;                     /* as written */
    const char *unschedulable;                    /* the scheduler's words */
    const char *node;                             /* once it is to end; "": it has none */
    const char *conditions; /* once it has ended or is to end: "DisruptionTarget=True\nReady=False\n" */
    int64_t incarnation, attempt, index;
    int64_t created_ms, started_ms, finished_ms;
    int64_t
        startable_ms;   /* since when nothing but itself keeps the container from starting: it has a node, and the init
                             containers before it are done */
    int64_t waiting_ms; /* since when its container was seen to wait in vain, in memory only; FIELD_UNSET: it was not */
    int64_t deletion_ms; /* when it was asked to end: deletionTimestamp less its grace period */
    int64_t grace_ms;    /* how long it may take to end then; 0 once it was deleted by force */
    int exit_code;       /* of that container, EXIT_CODE_NONE until it has ended */
    enum role role;
    enum pod_phase phase;
    bool member;    /* has a known role and an index, and the name that follows from its labels: part of a crew */
    bool adoptable; /* nobody's, and its container is told what its labels say: as an operator made it */
    bool
        fenced; /* it is to end, and is a worker of ours that has begun and has a checkpoint directory: later jobs of its
                       name fence it off there */
    bool begun; /* an init container has run: its volumes are there */
    bool current, ready, scheduled, disruption_target;
};

/* What a pod lacks is absent in the view. Its texts lie in `pod` and in `conditions`, which is initialised here and
 * released by the caller. */
void pod_view_read(const struct json *pod, struct pod_view *ret_view, struct buffer *conditions);

/* The name that follows from its job, role, index and incarnation: "digits-worker-3-7". False: it is longer than that of any pod
 * of ours, whose job has a short name (JOB_NAME_MAX). */
#define POD_PLACE_NAME_MAX 96 /* with its end */
bool pod_view_name_of_place(const struct pod_view *pod, char ret_name[POD_PLACE_NAME_MAX]);

/* A pod of the job with this UID, whatever its labels say. */
bool pod_view_is_of(const struct pod_view *pod, const char *job_uid);
/* It is nobody's, and its labels name that job. */
bool pod_view_is_orphan_of(const struct pod_view *pod, const char *job_uid);
/* Of another job, whose name it has in its labels: one that was deleted, where it is not the one that is looked at. */
bool pod_view_is_of_another_job(const struct pod_view *pod, const char *job_uid);

/* Still there as a process: neither Succeeded nor Failed. A pod that terminates is alive until it is gone. */
bool pod_view_alive(const struct pod_view *pod);
/* Its main container has ended, or the pod as a whole. */
bool pod_view_ended(const struct pod_view *pod);
bool pod_view_deleting(const struct pod_view *pod);
bool pod_view_succeeded(const struct pod_view *pod);
/* Image, command or configuration keep its container from starting: a kubelet tries again. */
bool pod_view_waits_in_vain(const struct pod_view *pod);
/* It has succeeded of its own accord: many programs exit with 0 when they are asked to end as well. */
bool pod_view_finished(const struct pod_view *pod);
/* Something else than its container ended it: a node that was drained or lost, a preemption. Deletion alone does not say so: the
 * rest of a crew that starts over is deleted by us. */
bool pod_view_was_disrupted(const struct pod_view *pod);
/* It had not ended when it was asked to, as far as can be told: one tells the API server's clock, the other its node's. */
bool pod_view_was_asked_to_end(const struct pod_view *pod);

#endif
