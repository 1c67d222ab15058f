/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the policies of a plan, and the functions that one policy calls of another that has no header of its own. A policy decides one
 * matter, such as a deadline or the replacement of lost pods. It is a function `bool <policy>_plan(struct planning *)`; plan_job calls the
 * policies in a fixed order (plan_job.c). A policy that returns true ends the plan: the policies after it are not called, but the status is
 * still updated.
 *
 * No policy calls plan_job, and none calls itself through others (scripts/check-structure).
 */
#ifndef COXSWAIN_CONTROLLER_POLICIES_H
#define COXSWAIN_CONTROLLER_POLICIES_H

#include "operator/controller/plan/planning.h"

/* Called before all policies: returns true if the status is older than the pods, and handles
 * that. */
bool catch_up_plan(struct planning *planning);

/* Time in which no pod of the job ran and no operator watched: from the end of the crew's last pod to the operator's start, as when the
 * machine of `cox run` was off. Like time spent suspended, it does not count for deadlines and budgets. absence_ms returns what is not yet
 * in the status; absence_update, called after all policies, adds it to the status when pods are replaced, or the job is over or
 * suspended. */
int64_t absence_ms(const struct planning *planning);
void absence_update(struct planning *planning);

/* Policies; plan_job.c lists them in the order in which they are called. */
bool dead_node_plan(struct planning *planning); /* pods that do not end although they were asked to */
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

/* Deletes the PodGroup, because the job is suspended or has ended. */
void gang_dismiss(struct planning *planning);

#endif
