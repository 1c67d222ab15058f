/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares what the policies of a plan share: the input, the job's pods sorted into slots (crew.h),
 * and the plan being built. A policy decides one matter, such as a deadline or the replacement of
 * lost pods. It is a function `bool <policy>_plan(struct planning *)` in a file of its own;
 * plan_job calls the policies in a fixed order. A policy that returns true ends the plan: the
 * policies after it are not called, but the status is still updated.
 */
#ifndef COXSWAIN_CONTROLLER_PLANNING_H
#define COXSWAIN_CONTROLLER_PLANNING_H

#include "operator/controller/plan/crew.h"
#include "operator/controller/plan/plan.h"

/* How far an elastic crew has finished whose workers each train to the end (finishing.h). */
enum finishing {
    FINISHING_NOT,   /* no worker has finished */
    FINISHING_WAITS, /* it depends on the workers that still run */
    FINISHING_DONE,
    FINISHING_SHORT, /* too few workers are left */
};

struct planning {
    const struct plan_input *input;
    const struct training_job *job;
    const struct job_status *old; /* the status in the cache */
    struct job_status *next;      /* the wanted status */
    struct plan *plan;
    struct crew crew;
    enum finishing finishing;
    struct obstacle obstacle; /* the input's, while something is left to create */
    const char *hold_reason;  /* why no pod may be created now; NULL: pods may be created */
    const char *hold_message;
    int64_t now_ms;
};

/* Called before all policies: returns true if the status is older than the pods, and handles
 * that. */
bool catch_up_plan(struct planning *planning);

/* Policies, in the order in which they are called. */
bool dead_node_plan(struct planning *planning); /* pods that do not end although they were asked to */
bool deleting_plan(struct planning *planning);  /* a job that is being deleted gets nothing new */
bool adopt_plan(struct planning *planning);     /* pods of the job that have lost their owner reference */
bool leftovers_plan(struct planning *planning); /* an earlier job of the same name: wait until its children are gone */
/* An invalid spec fails a job that has not run yet, with a message. A job that has run was accepted
 * by an earlier operator: it keeps its pods and can complete, but nothing is created from the spec. */
bool invalid_plan(struct planning *planning);
/* Copies the defaults of the job's class into its status, or says why that cannot be done yet. */
bool class_plan(struct planning *planning);
bool ttl_plan(struct planning *planning);        /* a finished job is deleted when its TTL has passed */
bool clean_plan(struct planning *planning);      /* a finished job's pods, according to cleanPodPolicy */
bool completion_plan(struct planning *planning); /* the job has succeeded */
bool deadline_plan(struct planning *planning);   /* activeDeadlineSeconds */
bool suspend_plan(struct planning *planning);
bool start_plan(struct planning *planning);
bool take_back_plan(struct planning *planning); /* a counted failure that a disruption explains after all */
bool limit_plan(struct planning *planning);     /* backoffLimit is used up, but a disruption may still explain that */
bool progress_deadline_plan(struct planning *planning); /* progressDeadlineSeconds */
bool judge_plan(struct planning *planning);             /* which pods ended and why, and what follows from it */
bool scale_plan(struct planning *planning);
bool gang_plan(struct planning *planning); /* the PodGroup, and whether its pods may be created */
/* Deletes pods on nodes that are about to be removed, or have a condition that the job avoids. */
bool node_leave_plan(struct planning *planning);
/* Deletes the pod of a worker that is slower than the rest. */
bool straggler_plan(struct planning *planning);
/* Nodes that failed pods are no longer avoided if pods find no other node. */
bool node_avoidance_plan(struct planning *planning);
bool replace_plan(struct planning *planning);     /* superseded pods are deleted */
bool certificate_plan(struct planning *planning); /* the crew's TLS certificates are rotated */
bool crew_key_plan(struct planning *planning);    /* a key that was removed is created again */
bool pause_plan(struct planning *planning);  /* a crew that waits for a sweep's decision, but belongs to no sweep */
bool create_plan(struct planning *planning); /* the Service and the promised pods */

/* Returns whether the job is being deleted but still exists, for example because of a finalizer. */
bool deleting_is_asked(const struct training_job *job);
/* Returns whether the job is being deleted and was never started, or its status is older than its
 * pods: its status is then not written any more. */
bool deleting_says_nothing(const struct planning *planning);

/* Returns what the status of a job that has run says of its invalid spec. */
const char *invalid_message(struct planning *planning);

/* Returns whether objects may be created: the spec is valid, and no create was refused, or it is
 * time to retry. If not, requeues the job for the time of the retry. */
bool create_may_be_tried(struct planning *planning);
/* Returns whether the slot's next pod still waits (back_off.h). */
bool create_backs_off(const struct planning *planning, const struct slot *slot);
/* Returns whether promised pods can be created now. */
bool create_is_due(struct planning *planning);
/* Returns whether pods of the promised incarnation may have existed unseen (plan.h), so that they
 * must be promised again under another incarnation. */
bool create_promises_again(const struct planning *planning);
/* Fails the job and returns true if one of its objects is invalid and the job has not run yet, so
 * that nothing is lost. A job that has run may have weeks of checkpoints, and its earlier pods were
 * accepted, so creates are retried, with back-off, and the API server's answer is reported. */
bool create_ends_job(struct planning *planning);

/* Notes in the status that an elastic job has shrunk. Called whatever the policies decide. */
void scale_down(struct planning *planning);

/* Sets Suspended back to False if a pod of a suspended job is alive after all. Called whatever the
 * policies decide. */
void suspend_take_back(struct planning *planning);
/* Says in the next status of a job that runs in another cluster (queue_delegate) that it may not run there now. */
void suspend_elsewhere(struct planning *planning, const char *reason, const char *why);

/* Add an action to the plan. */
void planning_act(struct planning *planning, enum action_type type, const struct pod_view *pod);
void planning_create_pod(struct planning *planning, enum role role, int64_t index);
void planning_look_for_pod(struct planning *planning, const struct slot *slot);
/* Adds an event, which is emitted after the status write. The input is gone by then, so all strings
 * must be static or in the plan's arena. */
void planning_event(struct planning *planning, bool warning, const char *reason, const char *action, const char *note);
/* Adds a warning about the plan's actions, which is emitted even if no status is written. */
void planning_event_of_action(struct planning *planning, const char *reason, const char *action, const char *note);
/* Adds a warning about the newest action, which is emitted only if that action succeeded. */
void planning_event_of_newest(struct planning *planning, const char *reason, const char *action, const char *note);
/* Adds a warning about a node, which is emitted after the status write. */
void planning_event_of_node(struct planning *planning, const char *node, const char *reason, const char *action,
                            const char *note);
/* suspend_deletes_pods returns whether the status says that pods are deleted on purpose: the job is
 * or is being suspended. */
#define SUSPENDING "Suspending" /* the reason of Suspended=False while pods are left */
bool suspend_deletes_pods(const struct job_status *status);
/* Forbids the plan to create pods; the first reason counts. */
void planning_hold(struct planning *planning, const char *reason, const char *message);
/* Deletes the PodGroup, because the job is suspended or has ended. */
void gang_dismiss(struct planning *planning);
/* Plans the job again at `at_ms` at the latest. */
void planning_requeue(struct planning *planning, int64_t at_ms);
/* Requeues the job for when an optional API in this state, which is not OPTIONAL_READY, may have
 * become available. */
void planning_await_api(struct planning *planning, enum optional_state state);
const char *planning_format(struct planning *planning, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Deletes the pod unless it is being deleted already. */
void planning_delete_pod(struct planning *planning, const struct pod_view *pod);

/* Returns a time of the old status, adjusted to the present clock; FIELD_UNSET: it has none. */
int64_t planning_time(const struct planning *planning, enum status_time time);

/* Returns whether training may have begun: the crew was complete once, a pod was ready or has
 * ended, or progress is known. */
bool planning_has_run(const struct planning *planning);

/* Sets the fields of the status that are set once, when the job starts. */
void planning_begin(struct planning *planning);

/* Ends the job: `type` is CONDITION_SUCCEEDED or CONDITION_FAILED. */
void planning_finish(struct planning *planning, enum condition_type type, const char *reason, const char *message);

/* Begins a new incarnation and promises the slots that `wanted` selects (NULL: all), in addition to
 * those still promised. */
typedef bool slot_wanted(const struct slot *slot);
void planning_promise(struct planning *planning, slot_wanted *wanted);
/* Begins a new incarnation as planning_promise does, for pods that were lost: Restarting is True until the successors of those that had run
 * are ready. */
void planning_promise_successors(struct planning *planning, slot_wanted *wanted);
/* Promises the same slots under a new incarnation. */
void planning_promise_again(struct planning *planning);

#endif
