/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/first_crew.h"

#include <string.h>

#include "operator/controller/objects/crew_certificate.h"
#include "operator/controller/plan/policies.h"
#include "operator/controller/plan/replicas.h"

bool first_crew_or_recorded(const struct pod_view *pod, int64_t recorded_incarnation, int64_t recorded_attempt)
{
    bool first = pod->incarnation == FIRST_INCARNATION && pod->attempt == FIRST_ATTEMPT;
    return first || (pod->incarnation <= recorded_incarnation && pod->attempt <= recorded_attempt);
}

bool first_crew_may_lie_ahead(const struct job_status *status)
{
    bool blank = status->attempt == 0 && status->incarnation == 0;
    for (int type = 0; type < CONDITION_TYPE_COUNT; type++)
        blank &= status->conditions[type].status == CONDITION_ABSENT;
    return blank;
}

static bool name_is_free(const struct planning *planning)
{
    const struct service_view *service = planning->input->service;
    return planning->crew.leftover_count == 0 && (!service || service_view_is_of(service, planning->job->uid));
}

/* As its spec stands for good. */
static bool never_waits(const struct training_job *job)
{
    return !job->elastic.enabled && job->run_policy.gang.scheduler == GANG_NONE && !crew_certificate_is_needed(job);
}

static bool waits_for_nothing(const struct training_job *job)
{
    return never_waits(job) && !job->suspend && !job->queue_name && !training_job_awaits_class(job);
}

int64_t first_crew_promised_incarnation(const struct planning *planning)
{
    bool may_have_been = planning->input->options->unrecorded_crews && never_waits(planning->job);
    return may_have_been ? FIRST_INCARNATION + 1 : FIRST_INCARNATION;
}

/* Promises are cleared from the status as pods are seen. */
static bool is_wholly_promised(const struct crew *crew)
{
    bool wholly = crew->slot_count > 0;
    for (size_t i = 0; i < crew->slot_count; i++)
        wholly &= crew->slots[i].promised;
    return wholly;
}

/* An incarnation that was raised while the first crew was still to come is none in which it ran. */
bool first_crew_is_unmade(const struct planning *planning)
{
    const struct job_status *old = planning->old;
    bool first = old->incarnation <= first_crew_promised_incarnation(planning) || is_wholly_promised(&planning->crew);
    return first && old->attempt <= FIRST_ATTEMPT && old->restart_count == 0 &&
           planning->crew.newest_incarnation == 0 && planning->input->memory.gone_incarnation == 0;
}

bool first_crew_may_begin(const struct planning *planning)
{
    return planning->input->memory.born_ms != FIELD_UNSET && !planning->input->invalid &&
           planning->job->deleted_ms == FIELD_UNSET && first_crew_may_lie_ahead(planning->old) &&
           planning->crew.newest_incarnation <= FIRST_INCARNATION && waits_for_nothing(planning->job) &&
           name_is_free(planning);
}

bool start_plan(struct planning *planning)
{
    if (planning->old->attempt > 0)
        return false;
    planning_begin(planning);
    planning->next->attempt = 1;
    planning_promise(planning, NULL);
    planning->next->incarnation = first_crew_promised_incarnation(planning);
    planning_event(planning, false, "Started", "Start",
                   planning_format(planning, "a crew of %zu pod%s is being created", planning->crew.slot_count,
                                   planning->crew.slot_count == 1 ? "" : "s"));
    return true;
}

void first_crew_begin(struct planning *planning, struct training_job *ret_job)
{
    start_plan(planning);
    planning->next->incarnation = FIRST_INCARNATION;
    planning->next->start_ms = planning->input->memory.born_ms;
    replicas_update(planning); /* the promise in its own words */
    *ret_job = *planning->job;
    ret_job->status = *planning->next;
    planning->job = ret_job;
    planning->old = &ret_job->status;
    planning->crew = crew_assemble(ret_job, planning->input->pods, planning->input->pod_count, &planning->plan->arena);
    planning->plan->begun = true;
}

bool first_crew_is_unrecorded(const struct planning *planning)
{
    return planning->old->attempt == 0 && planning->crew.newest_incarnation == FIRST_INCARNATION &&
           planning->crew.newest_attempt == FIRST_ATTEMPT;
}

/* A pod that came late, to a job that was suspended meanwhile, takes the word back that none is left. */
static void take_back_suspended(struct planning *planning)
{
    if (condition_is(planning->old, CONDITION_SUSPENDED, CONDITION_TRUE))
        condition_set(planning, CONDITION_SUSPENDED, CONDITION_FALSE, SUSPENDING, "waiting until all pods are gone");
}

/* The job has been active since they were created, by whomever. */
static int64_t oldest_creation_ms(const struct planning *planning)
{
    int64_t oldest_ms = planning->now_ms;
    for (size_t i = 0; i < planning->input->pod_count; i++) {
        const struct pod_view *pod = planning->input->pods[i];
        bool counts = pod->member && pod_view_is_of(pod, planning->job->uid) && pod->created_ms != FIELD_UNSET;
        if (counts && pod->created_ms < oldest_ms)
            oldest_ms = pod->created_ms;
    }
    return oldest_ms;
}

void first_crew_take_over(struct planning *planning)
{
    start_plan(planning);
    planning->next->incarnation = FIRST_INCARNATION;
    if (!condition_is(planning->old, CONDITION_SUSPENDED, CONDITION_TRUE))
        planning->next->start_ms = oldest_creation_ms(planning);
    take_back_suspended(planning);
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        struct slot *slot = &planning->crew.slots[i];
        slot->wanted = !slot->occupant;
        if (slot->wanted)
            planning->next->incarnation = FIRST_INCARNATION + 1;
    }
}

bool first_crew_is_whole(const struct job_status *status)
{
    return status->attempt == FIRST_ATTEMPT && status->incarnation == FIRST_INCARNATION && status->restart_count == 0 &&
           !status_terminal(status) && condition_is(status, CONDITION_SUSPENDED, CONDITION_ABSENT);
}

bool first_crew_starts(const struct job_status *status)
{
    return first_crew_is_whole(status) && !condition_is(status, CONDITION_RUNNING, CONDITION_TRUE);
}
