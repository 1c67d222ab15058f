/* SPDX-License-Identifier: Apache-2.0
 *
 * What the policies of a plan share: the input, the crew made of it, and the plan
 * as it grows. A policy is a function `bool <policy>_plan(struct planning *)` in a
 * file of its own; it returns true when nothing after it has anything to say.
 */
#ifndef COXSWAIN_CONTROLLER_PLANNING_H
#define COXSWAIN_CONTROLLER_PLANNING_H

#include "operator/controller/plan/crew.h"
#include "operator/controller/plan/plan.h"

/* How far an elastic crew is whose workers each train to the end (finishing.h). */
enum finishing {
    FINISHING_NOT,   /* none of them has */
    FINISHING_WAITS, /* those at work decide */
    FINISHING_DONE,
    FINISHING_SHORT, /* too few are left */
};

struct planning {
    const struct plan_input *input;
    const struct training_job *job;
    const struct job_status *old; /* as the cache has it */
    struct job_status *next;      /* as it should be */
    struct plan *plan;
    struct crew crew;
    enum finishing finishing;
    struct obstacle obstacle; /* the input's, while something is left to create */
    const char *hold_reason;  /* why no pod may be created now; NULL: they may */
    const char *hold_message;
    int64_t now_ms;
};

/* Before all policies: a status older than its pods allows none of them. */
bool catch_up_plan(struct planning *planning);

/* Policies, in the order in which they are asked. */
bool dead_node_plan(struct planning *planning);  /* pods that do not end although they were asked to */
bool deleting_plan(struct planning *planning);   /* a job on its way out gets nothing new */
bool adopt_plan(struct planning *planning);      /* pods of the job that have lost their owner reference */
bool leftovers_plan(struct planning *planning);  /* an earlier job of the same name: wait until its children are gone */
bool invalid_plan(struct planning *planning);    /* a wrong spec ends the job with a sentence */
bool ttl_plan(struct planning *planning);        /* a finished job goes when its time has come */
bool clean_plan(struct planning *planning);      /* a finished job's pods, according to cleanPodPolicy */
bool completion_plan(struct planning *planning); /* the chief is done */
bool deadline_plan(struct planning *planning);   /* activeDeadlineSeconds */
bool suspend_plan(struct planning *planning);
bool start_plan(struct planning *planning);
bool take_back_plan(struct planning *planning); /* a charge that a disruption explains after all */
bool limit_plan(struct planning *planning);     /* backoffLimit is spent, but a disruption may explain that yet */
bool judge_plan(struct planning *planning);     /* what went wrong, and what follows from it */
bool scale_plan(struct planning *planning);
bool gang_plan(struct planning *planning);        /* the PodGroup, and whether its pods may come */
bool replace_plan(struct planning *planning);     /* superseded pods give way */
bool certificate_plan(struct planning *planning); /* what the crew encrypts under */
bool crew_key_plan(struct planning *planning);    /* a key that was removed is made anew */
bool create_plan(struct planning *planning);      /* the Service and the promised pods */

/* Somebody has deleted the job, and something keeps it. */
bool deleting_is_asked(const struct training_job *job);
/* Such a job that nobody had begun, or whose status is older than its pods: its last words stay as they are. */
bool deleting_says_nothing(const struct planning *planning);

/* Nothing was refused, or it is time to try again; else the plan looks again when it is. */
bool create_may_be_tried(struct planning *planning);
/* The pod waits, since the one before it ended too soon. */
bool create_backs_off(const struct planning *planning, const struct slot *slot);
/* Pods are promised that nothing keeps from being created now. */
bool create_is_due(struct planning *planning);
/* The promise that is left to keep may be used up (plan.h): it is made anew first. */
bool create_promises_again(const struct planning *planning);
/* An object of the job is wrong and the job has not run yet, so nothing is lost: it fails. A job that has run may have weeks of
 * checkpoints, and its earlier pods were accepted: it tries again, with back-off, and says what the API server answers. */
bool create_ends_job(struct planning *planning);

/* An elastic job that shrank: whatever the plan says, its status knows of it. */
void scale_down(struct planning *planning);

/* A pod lives that came too late: whatever the plan says, the job is not suspended yet. */
void suspend_take_back(struct planning *planning);

/* Adds to the plan. */
void planning_act(struct planning *planning, enum action_type type, const struct pod_view *pod);
void planning_create_pod(struct planning *planning, enum role role, int64_t index);
void planning_look_for_pod(struct planning *planning, const struct slot *slot);
/* It is told when all has been written, and the input is gone by then: all texts are static or in the plan's arena. */
void planning_event(struct planning *planning, bool warning, const char *reason, const char *action, const char *note);
/* A warning that tells of an action rather than of the status. */
void planning_event_of_action(struct planning *planning, const char *reason, const char *action, const char *note);
/* The same of the newest action alone: it is told when that was done. */
void planning_event_of_newest(struct planning *planning, const char *reason, const char *action, const char *note);
/* The status says that pods are ended on purpose: the job is suspended, or about to be. */
#define SUSPENDING "Suspending" /* the reason of Suspended=False while pods are left */
bool suspend_sends_away(const struct job_status *status);
/* No pod may be created now; the first reason counts. */
void planning_hold(struct planning *planning, const char *reason, const char *message);
/* The PodGroup goes: the job is suspended or over. */
void gang_dismiss(struct planning *planning);
void planning_requeue(struct planning *planning, int64_t at_ms);
/* Looks again when an optional API in this state, which is not OPTIONAL_READY, may be there. */
void planning_await_api(struct planning *planning, enum optional_state state);
const char *planning_format(struct planning *planning, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Deletes it unless that was asked for already. */
void planning_delete_pod(struct planning *planning, const struct pod_view *pod);

/* A time of the old status by the clock as it goes now; FIELD_UNSET: it has none. */
int64_t planning_time(const struct planning *planning, enum status_time time);

/* Training may have begun: the crew was complete once, a pod was ready or has ended, or progress is known. */
bool planning_has_run(const struct planning *planning);

/* What the status says once, from the start on. */
void planning_begin(struct planning *planning);

/* The end of a job: `type` CONDITION_SUCCEEDED or CONDITION_FAILED. */
void planning_finish(struct planning *planning, enum condition_type type, const char *reason, const char *message);

/* A new incarnation: the slots that `wanted` says yes to (NULL: all) are promised besides those that still are. */
typedef bool slot_wanted(const struct slot *slot);
void planning_promise(struct planning *planning, slot_wanted *wanted);
/* The same for pods that were lost: Restarting is True until the successors of those that had run are ready. */
void planning_promise_successors(struct planning *planning, slot_wanted *wanted);
/* The same slots under a new incarnation. */
void planning_promise_again(struct planning *planning);

#endif
