/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/conditions.h"

#include <inttypes.h>
#include <string.h>

#include "common/contract/environment.h"
#include "operator/controller/objects/crew_roles.h"
#include "operator/controller/plan/policies.h"
#include "operator/controller/plan/progress_deadline.h"
#include "operator/controller/plan/queue_plan.h"

/* Turns it False, when there is something to turn. */
static void condition_end(struct planning *planning, enum condition_type type, const char *reason, const char *message)
{
    if (condition_is(planning->next, type, CONDITION_TRUE))
        condition_set(planning, type, CONDITION_FALSE, reason, message);
}

/* Returns how many workers an elastic crew can do without at a time; never the first. */
static int64_t dispensable_workers(const struct training_job *job)
{
    return job_role_count(job, ROLE_WORKER) - job_role_minimum(job, ROLE_WORKER);
}

static bool is_dispensable(const struct slot *slot)
{
    return slot->role == ROLE_WORKER && slot->index > 0;
}

/* The first required slot that keeps the crew from running, NULL: it is complete. `ret_away` counts those that are away
 * and may be. */
static const struct slot *first_missing(const struct planning *planning, int64_t *ret_count, int64_t *ret_away)
{
    const struct crew *crew = &planning->crew;
    const struct slot *first = NULL;
    int64_t spare = dispensable_workers(planning->job);
    *ret_count = *ret_away = 0;
    for (size_t i = crew->slot_count; i-- > 0;) {
        const struct slot *slot = &crew->slots[i];
        if (!slot_required(slot) || (slot_fulfilled(slot) && !slot->failed))
            continue;
        if (is_dispensable(slot) && *ret_away < spare) {
            ++*ret_away;
            continue;
        }
        first = slot;
        ++*ret_count;
    }
    return first;
}

static const char *readiness(struct planning *planning, int64_t away)
{
    if (planning->finishing == FINISHING_WAITS)
        return "a worker has finished, so training is over: the other workers run to their end, and no worker is "
               "created or waited for any more";
    if (away == 0)
        return "all required pods are ready";
    return planning_format(
        planning, "%" PRId64 " of %" PRId64 " workers are ready, and workers.minReplicas is %" PRId64,
        planning->job->document.workers - away, planning->job->document.workers, planning->job->elastic.min_workers);
}

static const char *with_deadline(struct planning *planning, const char *words)
{
    if (!progress_deadline_is_blind(planning))
        return words;
    return planning_format(planning,
                           "%s; progressDeadlineSeconds has passed, but the operator cannot see whether there was a "
                           "new step, so it does not restart the crew",
                           words);
}

static const char *completeness(struct planning *planning, int64_t away)
{
    const char *ready = readiness(planning, away), *chief = role_name(crew_chief_role(planning->job));
    switch (planning->input->chief_voice) {
    case CHIEF_SILENT:
        return planning_format(planning,
                               "%s; %s 0 does not answer on port %d, so its progress is unknown: check whether a "
                               "NetworkPolicy blocks the operator",
                               ready, chief, PORT_HTTP);
    case CHIEF_STRANGE:
        return planning_format(planning,
                               "%s; %s 0 answers on port %d, but not with the status of this job, so its progress is "
                               "unknown: check whether its image is a worker of another version",
                               ready, chief, PORT_HTTP);
    default:
        return ready;
    }
}

/* A successor is not there yet, whether the crew can work without or not. */
static bool is_restarting(const struct planning *planning)
{
    for (size_t i = 0; i < planning->crew.slot_count; i++)
        if (slot_restarting(&planning->crew.slots[i]))
            return true;
    return false;
}

/* Texts from the chief are copied, because its next answer may replace them while this plan is carried out. */
static void update_running(struct planning *planning)
{
    int64_t count, away;
    const struct slot *missing = first_missing(planning, &count, &away);
    if (!missing && planning->crew.slot_count > 0) {
        const char *reason = away > 0 ? "CrewSufficient" : "CrewComplete";
        condition_set(planning, CONDITION_RUNNING, CONDITION_TRUE, reason,
                      with_deadline(planning, completeness(planning, away)));
        if (!is_restarting(planning))
            condition_end(planning, CONDITION_RESTARTING, reason, "all required pods are ready again");
        return;
    }
    const char *others = count > 1 ? planning_format(planning, " and %" PRId64 " more", count - 1) : "";
    const char *told = planning->input->crew_message;
    const char *message = told      ? planning_format(planning, "%s", told)
                          : missing ? planning_format(planning, "waiting for %s %" PRId64 "%s",
                                                      role_name(missing->role), missing->index, others)
                                    : "the job has no pods";
    condition_set(planning, CONDITION_RUNNING, CONDITION_FALSE, "CrewIncomplete", message);
}

static void set_obstructed(struct planning *planning, const char *reason, const char *message)
{
    const char *before = planning->old->conditions[CONDITION_SCHEDULED].reason;
    if (!before || strcmp(before, reason) != 0)
        planning_event(planning, true, reason, "CreatePods", message);
    condition_set(planning, CONDITION_SCHEDULED, CONDITION_FALSE, reason, message);
}

/* Or there. */
static bool is_to_come(const struct planning *planning, const struct slot *slot)
{
    return slot->occupant || slot->wanted || planning->finishing != FINISHING_WAITS;
}

/* Says so. The message is that of the first pod for which there is no node. */
static bool some_have_no_node(struct planning *planning)
{
    bool some = false;
    const char *refusal = "";
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        const struct slot *slot = &planning->crew.slots[i];
        const struct pod_view *pod = slot->occupant;
        if (slot->done || (pod && pod->scheduled) || !is_to_come(planning, slot))
            continue;
        some = true;
        if (pod && *refusal == '\0')
            refusal = pod->unschedulable;
    }
    if (some)
        condition_set(planning, CONDITION_SCHEDULED, CONDITION_FALSE, *refusal ? "Unschedulable" : "Pending",
                      *refusal ? refusal : "pods are being created and scheduled");
    return some;
}

static void update_scheduled(struct planning *planning)
{
    const struct obstacle *obstacle = &planning->obstacle;
    if (planning->input->invalid) {
        set_obstructed(planning, "InvalidSpec", invalid_message(planning));
        return;
    }
    if (obstacle->kind != OBSTACLE_NONE) {
        set_obstructed(planning, obstacle_reason(obstacle->kind), planning_format(planning, "%s", obstacle->message));
        return;
    }
    if (planning->hold_reason &&
        (crew_unfilled(&planning->crew) || planning->next->incarnation != planning->old->incarnation)) {
        condition_set(planning, CONDITION_SCHEDULED, CONDITION_FALSE, planning->hold_reason, planning->hold_message);
        return;
    }
    if (some_have_no_node(planning))
        return;
    const char *growth = status_terminal(planning->next) ? NULL : queue_growth_waits(planning);
    if (growth)
        condition_set(planning, CONDITION_SCHEDULED, CONDITION_TRUE, "GrowthQueued", growth);
    else
        condition_set(planning, CONDITION_SCHEDULED, CONDITION_TRUE, "AllScheduled", "every pod has a node");
}

/* Pods may train on for as long as a finalizer keeps the job. */
static void update_deleting(struct planning *planning)
{
    const char *message = "the job is being deleted, and its pods go with it";
    int64_t count, away;
    bool runs = planning->crew.slot_count > 0 && !first_missing(planning, &count, &away);
    condition_set(planning, CONDITION_RUNNING, runs ? CONDITION_TRUE : CONDITION_FALSE, "Deleting", message);
    condition_end(planning, CONDITION_RESTARTING, "Deleting", message);
}

void conditions_update(struct planning *planning)
{
    struct job_status *next = planning->next;
    if (status_terminal(next)) {
        bool failed = condition_is(next, CONDITION_FAILED, CONDITION_TRUE);
        const char *reason = failed ? "Failed" : "Succeeded", *message = "the job is over";
        condition_end(planning, CONDITION_RUNNING, reason, message);
        condition_end(planning, CONDITION_RESTARTING, reason, message);
        condition_end(planning, CONDITION_SUSPENDED, reason, message);
        condition_end(planning, CONDITION_JOIN_BLOCKED, reason, message);
        condition_end(planning, CONDITION_STRAGGLING, reason, message);
        if (!failed)
            condition_end(planning, CONDITION_CHECKPOINTS_FAILING, reason, message);
    } else if (status_deletes_pods(next)) {
        condition_end(planning, CONDITION_RUNNING, "Suspended", "the job is suspended");
        condition_end(planning, CONDITION_RESTARTING, "Suspended", "the job is suspended");
        condition_end(planning, CONDITION_JOIN_BLOCKED, "Suspended", "the job is suspended");
        condition_end(planning, CONDITION_STRAGGLING, "Suspended", "the job is suspended");
        condition_end(planning, CONDITION_SCHEDULED, "Suspended", "the job is suspended");
    } else if (planning->job->deleted_ms != FIELD_UNSET) {
        if (next->attempt > 0)
            update_deleting(planning);
    } else if (next->attempt > 0) {
        update_running(planning);
        update_scheduled(planning);
    }
    if (next->attempt > 0 && next->conditions[CONDITION_CREATED].status == CONDITION_ABSENT)
        condition_set(planning, CONDITION_CREATED, CONDITION_TRUE, "JobCreated", "the operator has started the job");
}
