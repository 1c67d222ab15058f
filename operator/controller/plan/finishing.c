/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/finishing.h"

#include "operator/controller/plan/ending.h"

/* Many programs exit with 0 when they are asked to end. A pod that ends with 0 after its job was suspended has therefore not finished its
 * work, unless it had before. In doubt, continuing from the last checkpoint loses nothing. */
static bool was_sent_away(const struct planning *planning, const struct pod_view *pod)
{
    return status_deletes_pods(planning->old) && pod_view_was_asked_to_end(pod);
}

static bool ended_with_0(const struct planning *planning, const struct slot *slot)
{
    const struct pod_view *pod = slot->occupant;
    return slot->done || (pod && pod_view_succeeded(pod) && !was_sent_away(planning, pod));
}

/* Once training is over, it does not matter why the remaining pods end. */
bool finishing_slot_done(const struct planning *planning, const struct slot *slot)
{
    bool any = slot->done || planning->finishing != FINISHING_NOT;
    return ended_with_0(planning, slot) && (any || ending_is_success(slot->occupant, planning->job->framework));
}

bool finishing_needs_workers(const struct training_job *job)
{
    return job->framework == FRAMEWORK_PYTORCH || job->framework == FRAMEWORK_JAX;
}

/* Returns when the chief finished; FIELD_UNSET: it has not, or the time is not known. */
static int64_t finish_of(const struct planning *planning, const struct slot *chief)
{
    if (!chief->done)
        return FIELD_UNSET;
    return chief->occupant ? chief->occupant->finished_ms : planning_time(planning, STATUS_TIME_CHIEF_FINISH);
}

/* Returns whether the pod started after the chief had finished, and so found no crew to join. */
static bool came_late(const struct planning *planning, const struct pod_view *pod, const struct slot *chief)
{
    int64_t finish_ms = finish_of(planning, chief);
    return finish_ms != FIELD_UNSET && pod->started_ms > finish_ms;
}

/* Returns whether a deleted pod has far outlasted its grace period: its node does not report that
 * it has ended. */
static bool is_given_up(struct planning *planning, const struct pod_view *pod)
{
    if (!pod_view_deleting(pod))
        return false;
    int64_t due_ms = pod->deletion_ms + pod->grace_ms + planning->input->options->dead_node_ms;
    if (planning->now_ms < due_ms)
        planning_requeue(planning, due_ms);
    return planning->now_ms >= due_ms;
}

static bool is_at_work(struct planning *planning, const struct slot *slot, const struct slot *chief)
{
    const struct pod_view *pod = slot->occupant;
    return pod && !pod_view_ended(pod) && pod->started_ms != FIELD_UNSET && !came_late(planning, pod, chief) &&
           !is_given_up(planning, pod);
}

struct workers {
    int64_t finished, done, at_work; /* `done`: those that ended well only because they were asked to, too */
};

static struct workers count_workers(struct planning *planning, const struct slot *chief)
{
    const struct crew *crew = &planning->crew;
    struct workers workers = {0};
    for (size_t i = crew->first[ROLE_WORKER]; i < crew->first[ROLE_WORKER + 1]; i++) {
        workers.finished += crew->slots[i].done;
        workers.done += ended_with_0(planning, &crew->slots[i]);
        workers.at_work += is_at_work(planning, &crew->slots[i], chief);
    }
    return workers;
}

/* Returns the chief of an elastic crew whose workers each train to the end; NULL: the crew is not
 * of that kind. */
static const struct slot *chief_of(const struct planning *planning)
{
    bool concerned = planning->job->elastic.enabled && finishing_needs_workers(planning->job);
    return concerned ? crew_chief(&planning->crew, planning->job) : NULL;
}

enum finishing finishing_of(struct planning *planning)
{
    const struct training_job *job = planning->job;
    const struct slot *chief = chief_of(planning);
    if (!chief)
        return FINISHING_NOT;
    struct workers workers = count_workers(planning, chief);
    int64_t needed = job_role_minimum(job, ROLE_WORKER);
    bool chief_done = ended_with_0(planning, chief), chief_works = is_at_work(planning, chief, chief);
    if (workers.finished == 0)
        return FINISHING_NOT;
    if ((!chief_done && !chief_works) || workers.done + workers.at_work < needed)
        return FINISHING_SHORT;
    return chief_works || workers.at_work > 0 ? FINISHING_WAITS : FINISHING_DONE;
}

void finishing_promise_nobody(struct planning *planning)
{
    struct crew *crew = &planning->crew;
    bool waits = false;
    for (size_t i = 0; i < crew->slot_count; i++) {
        struct slot *slot = &crew->slots[i];
        if (slot->role == ROLE_WORKER)
            slot->promised = slot->wanted = slot->restarting = false;
        waits |= slot->wanted;
    }
    if (!waits)
        planning->next->backoff_until_ms = FIELD_UNSET;
}

void finishing_update(struct planning *planning)
{
    const struct slot *chief = chief_of(planning);
    struct job_status *next = planning->next;
    if (status_terminal(planning->old))
        return;
    if (!chief || !chief->done || next->attempt != planning->old->attempt)
        next->chief_finish_ms = FIELD_UNSET;
    else if (next->chief_finish_ms == FIELD_UNSET)
        next->chief_finish_ms = finish_of(planning, chief);
}
