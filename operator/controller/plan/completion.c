/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "operator/controller/plan/finishing.h"
#include "operator/controller/plan/policies.h"

static int64_t workers_done(const struct planning *planning)
{
    const struct crew *crew = &planning->crew;
    int64_t done = 0;
    for (size_t i = crew->first[ROLE_WORKER]; i < crew->first[ROLE_WORKER + 1]; i++)
        done += finishing_slot_done(planning, &crew->slots[i]);
    return done;
}

static bool job_done(const struct planning *planning, const struct slot *chief)
{
    if (!chief || !finishing_slot_done(planning, chief))
        return false;
    return !finishing_needs_workers(planning->job) || planning->finishing == FINISHING_DONE ||
           workers_done(planning) == job_role_count(planning->job, ROLE_WORKER);
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

/* How long the end of a job whose chief is done is held back, so that one status write tells all of it: the others may still end, and
 * the log of a script may still be read. Times in the API are whole seconds. */
#define OTHERS_END_MS 2000
#define LOG_READ_MS 10000

/* A node's time that is well ahead of ours tells nothing. */
static bool is_held_back(struct planning *planning, int64_t since_ms, int64_t for_ms)
{
    if (since_ms == FIELD_UNSET || since_ms > planning->now_ms + for_ms || planning->now_ms >= since_ms + for_ms)
        return false;
    planning_requeue(planning, since_ms + for_ms);
    return true;
}

static const char *workers_message(struct planning *planning)
{
    int64_t done = workers_done(planning), count = job_role_count(planning->job, ROLE_WORKER);
    if (done == count)
        return "all workers are done: exit code 0";
    return planning_format(planning,
                           "%" PRId64 " of %" PRId64 " workers are done: exit code 0; workers.minReplicas is %" PRId64
                           ", and no worker still runs",
                           done, count, planning->job->elastic.min_workers);
}

bool completion_plan(struct planning *planning)
{
    const struct slot *chief = crew_chief(&planning->crew, planning->job);
    if (!job_done(planning, chief))
        return false;
    int64_t finished_ms = chief->occupant ? chief->occupant->finished_ms : FIELD_UNSET;
    if (!crew_ended(&planning->crew) && is_held_back(planning, finished_ms, OTHERS_END_MS))
        return true;
    if (is_held_back(planning, planning->input->log.unread_since_ms, LOG_READ_MS))
        return true;
    if (finishing_needs_workers(planning->job))
        planning_finish(planning, CONDITION_SUCCEEDED, "WorkersSucceeded", workers_message(planning));
    else
        planning_finish(
            planning, CONDITION_SUCCEEDED, "ChiefSucceeded",
            planning_format(planning, "%s %" PRId64 " is done: exit code 0", role_name(chief->role), chief->index));
    return true;
}
