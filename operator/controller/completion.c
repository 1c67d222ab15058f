/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "operator/controller/conditions.h"

/* Many programs exit 0 when they are asked to end. Who is asked because the job is suspended has not finished its work by
 * that, unless it had before; where that is not sure, to go on from the last checkpoint loses nothing. */
static bool was_sent_away(const struct planning *planning, const struct pod_view *pod)
{
    return suspend_sends_away(planning->old) && pod_view_was_asked_to_end(pod);
}

static bool slot_done(const struct planning *planning, const struct slot *slot)
{
    const struct pod_view *pod = slot->occupant;
    return slot->done || (pod && pod_view_succeeded(pod) && !was_sent_away(planning, pod));
}

static bool all_workers_done(const struct planning *planning)
{
    const struct crew *crew = &planning->crew;
    for (size_t i = crew->first[ROLE_WORKER]; i < crew->first[ROLE_WORKER + 1]; i++)
        if (!slot_done(planning, &crew->slots[i]))
            return false;
    return true;
}

/* Every process of PyTorch and JAX trains to the end by itself; in the other frameworks the chief tells when that is. */
static bool needs_all_workers(const struct training_job *job)
{
    return job->framework == FRAMEWORK_PYTORCH || job->framework == FRAMEWORK_JAX;
}

static bool job_done(const struct planning *planning, const struct slot *chief)
{
    if (!chief || !slot_done(planning, chief))
        return false;
    return !needs_all_workers(planning->job) || all_workers_done(planning);
}

static bool crew_ended(const struct crew *crew)
{
    for (size_t i = 0; i < crew->slot_count; i++) {
        const struct slot *slot = &crew->slots[i];
        if (slot_required(slot) && slot->occupant && !pod_view_ended(slot->occupant))
            return false;
    }
    return true;
}

/* How long the others may still take, so that one status write tells the whole end. Times in the API are whole seconds. */
#define LAST_WORDS_MS 2000

/* The time is the node's: when its clock is well ahead of ours, it tells nothing. */
static bool last_words_may_come(struct planning *planning, int64_t finished_ms)
{
    if (finished_ms == FIELD_UNSET || finished_ms > planning->now_ms + LAST_WORDS_MS ||
        planning->now_ms >= finished_ms + LAST_WORDS_MS)
        return false;
    planning_requeue(planning, finished_ms + LAST_WORDS_MS);
    return true;
}

bool completion_plan(struct planning *planning)
{
    const struct slot *chief = crew_chief(&planning->crew, planning->job);
    if (!job_done(planning, chief))
        return false;
    int64_t finished_ms = chief->occupant ? chief->occupant->finished_ms : FIELD_UNSET;
    if (!crew_ended(&planning->crew) && last_words_may_come(planning, finished_ms))
        return true;
    if (needs_all_workers(planning->job))
        planning_finish(planning, CONDITION_SUCCEEDED, "WorkersSucceeded", "all workers are done: exit code 0");
    else
        planning_finish(
            planning, CONDITION_SUCCEEDED, "ChiefSucceeded",
            planning_format(planning, "%s %" PRId64 " is done: exit code 0", role_name(chief->role), chief->index));
    return true;
}
