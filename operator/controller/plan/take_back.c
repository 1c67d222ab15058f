/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/take_back.h"

#include "operator/controller/plan/node_avoidance.h"
#include "operator/controller/plan/policies.h"

static bool may_be_collateral(const struct training_job *job, const struct pod_view *pod)
{
    return job->framework != FRAMEWORK_COXSWAIN && pod && pod->exit_code >= 1 && pod->exit_code <= 127;
}

void take_back_note(struct planning *planning, const struct slot *cause, enum ending_kind kind)
{
    if (kind != ENDING_FAILURE || !may_be_collateral(planning->job, cause->occupant))
        return;
    planning->next->charged_ms = planning->now_ms;
    planning->next->charged_attempt = planning->old->attempt;
}

/* A pod that has ended by itself was not disrupted. */
static bool may_have_been_disrupted(const struct planning *planning, const struct pod_view *pod)
{
    return pod->member && pod->role != ROLE_EVALUATOR && pod_view_is_of(pod, planning->job->uid) &&
           pod->attempt == planning->next->charged_attempt && (!pod_view_ended(pod) || pod_view_was_disrupted(pod));
}

static int64_t charged_time(const struct planning *planning)
{
    const struct job_status *old = planning->old, *next = planning->next;
    return next->charged_ms == old->charged_ms ? planning_time(planning, STATUS_TIME_CHARGED) : next->charged_ms;
}

/* A time in the future was noted by another clock. */
static bool time_is_left(struct planning *planning)
{
    int64_t charged_ms = charged_time(planning);
    if (charged_ms == FIELD_UNSET || charged_ms > planning->now_ms || planning->now_ms >= charged_ms + TAKE_BACK_MS)
        return false;
    planning_requeue(planning, charged_ms + TAKE_BACK_MS);
    return true;
}

/* Events that one plan finds together may have happened up to this long apart. */
#define MOMENT_MS 2000

static bool one_has_vanished(const struct planning *planning)
{
    const struct plan_input *input = planning->input;
    int64_t charged_ms = charged_time(planning);
    return charged_ms != FIELD_UNSET && input->memory.vanished_attempt > 0 &&
           input->memory.vanished_attempt == planning->next->charged_attempt &&
           input->memory.vanished_ms >= charged_ms - MOMENT_MS;
}

bool take_back_may_follow(struct planning *planning)
{
    if (one_has_vanished(planning))
        return time_is_left(planning);
    for (size_t i = 0; i < planning->input->pod_count; i++)
        if (may_have_been_disrupted(planning, planning->input->pods[i]))
            return time_is_left(planning);
    return false;
}

static bool an_earlier_crew_was_disrupted(const struct planning *planning)
{
    for (size_t i = 0; i < planning->crew.superseded_count; i++) {
        const struct pod_view *pod = planning->crew.superseded[i];
        if (pod->attempt == planning->old->charged_attempt && pod_view_was_disrupted(pod))
            return true;
    }
    return one_has_vanished(planning);
}

/* If only the failed pod was replaced, the other pods still occupy their slots; judge_plan counts
 * their disruption. */
static bool this_crew_is_disrupted(const struct planning *planning)
{
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        const struct slot *slot = &planning->crew.slots[i];
        const struct pod_view *pod = slot->occupant;
        if (slot_lost(slot) || (pod && pod->incarnation < planning->old->incarnation &&
                                (pod_view_was_disrupted(pod) || (pod_view_deleting(pod) && !pod_view_ended(pod)))))
            return true;
    }
    return false;
}

bool take_back_plan(struct planning *planning)
{
    const struct job_status *old = planning->old;
    if (old->charged_ms == FIELD_UNSET || old->restarts.failures == 0 ||
        planning->now_ms >= planning_time(planning, STATUS_TIME_CHARGED) + TAKE_BACK_MS)
        return false;
    bool same_crew = old->charged_attempt == old->attempt;
    if (same_crew ? !this_crew_is_disrupted(planning) : !an_earlier_crew_was_disrupted(planning))
        return false;
    planning->next->restarts.failures--;
    planning->next->restarts.disruptions += same_crew ? 0 : 1;
    planning->next->restarts.ignored += same_crew ? 1 : 0; /* the disruption is an event of its own */
    planning->next->charged_ms = planning->next->charged_attempt = FIELD_UNSET;
    node_avoidance_take_back(planning);
    planning_event(
        planning, false, "ChargeTakenBack", "Judge",
        "the last failure is no longer counted against backoffLimit: it followed from the disruption of a pod of the "
        "crew");
    return false;
}
