/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares what the policies of a plan (policies.h) share: the input, the job's pods sorted into
 * slots (crew.h), and the plan being built.
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
/* Forbids the plan to create pods; the first reason counts. */
void planning_hold(struct planning *planning, const char *reason, const char *message);
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

/* Sets a condition in the next status; its transition time changes only if its status does.
 * `reason` is static; `message` is static or lies in the plan's arena, and is truncated at
 * CONDITION_MESSAGE_MAX. */
void condition_set(struct planning *planning, enum condition_type type, enum condition_status status,
                   const char *reason, const char *message);

/* As condition_set, to True; a warning event with the same reason and message says so if it was not True before. */
void condition_warn(struct planning *planning, enum condition_type type, const char *reason, const char *action,
                    const char *message);

/* Returns the highest power of ten that is not above `number`, at least 1. Figures in messages are rounded by it, because the status
 * is written each time that its text changes. */
int64_t condition_figure_scale(int64_t number);

#define SUSPENDING "Suspending" /* the reason of Suspended=False while pods are left */
/* Returns whether the status says that pods are deleted on purpose: the job is or is being suspended. */
bool status_deletes_pods(const struct job_status *status);

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
