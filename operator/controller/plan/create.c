/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memory.h"
#include "operator/controller/observed/owner.h"
#include "operator/controller/plan/conditions.h"
#include "operator/controller/plan/planning.h"
#include "operator/controller/plan/restart_delay.h"

static bool is_time(struct planning *planning, int64_t at_ms)
{
    if (at_ms == FIELD_UNSET || at_ms <= planning->now_ms)
        return true;
    planning_requeue(planning, at_ms);
    return false;
}

static bool slot_to_fill(const struct slot *slot)
{
    return slot->promised && !slot->occupant && !slot->blocked;
}

/* A back-off is for those that were lost, and for a crew that waits as a whole: who joins one that runs has none. */
static bool has_to_wait(const struct planning *planning, const struct slot *slot)
{
    return slot->restarting || !condition_is(planning->old, CONDITION_RUNNING, CONDITION_TRUE);
}

static bool slot_is_due(const struct planning *planning, const struct slot *slot, bool backs_off)
{
    return slot_to_fill(slot) && !(backs_off && has_to_wait(planning, slot));
}

static bool has_slot_to_fill(const struct planning *planning, bool backs_off)
{
    const struct crew *crew = &planning->crew;
    for (size_t i = 0; i < crew->slot_count; i++)
        if (slot_is_due(planning, &crew->slots[i], backs_off))
            return true;
    return false;
}

/* No wait is longer than the ceiling and its jitter: what lies further ahead was set by another clock. */
static int64_t backoff_until(const struct planning *planning)
{
    int64_t until_ms = planning_time(planning, STATUS_TIME_BACKOFF);
    int64_t longest_ms = RESTART_DELAY_CEILING_MS + RESTART_DELAY_CEILING_MS / 10;
    return until_ms != FIELD_UNSET && until_ms > planning->now_ms + longest_ms ? FIELD_UNSET : until_ms;
}

/* Whose names would lead nowhere, or to the pods of somebody else, whose Service of that name the cache does not show: no
 * pod comes before the Service is there and the job's. */
static bool has_service(const struct planning *planning)
{
    const struct service_view *service = planning->input->service;
    return service && service_view_is_of(service, planning->job->uid);
}

static bool may_create_pods(struct planning *planning, bool *ret_backs_off)
{
    if (planning->hold_reason || !has_service(planning) || !has_slot_to_fill(planning, false))
        return false;
    *ret_backs_off = !is_time(planning, backoff_until(planning));
    return has_slot_to_fill(planning, *ret_backs_off) && planning->crew.earlier_count == 0;
}

bool create_promises_again(const struct planning *planning)
{
    return planning->old->epoch <= planning->input->inherited_epoch;
}

static void create_pods(struct planning *planning)
{
    bool backs_off;
    if (!may_create_pods(planning, &backs_off))
        return;
    if (create_promises_again(planning)) {
        planning_promise_again(planning);
        return;
    }
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        const struct slot *slot = &planning->crew.slots[i];
        if (slot_is_due(planning, slot, backs_off))
            planning_create_pod(planning, slot->role, slot->index);
    }
}

/* Where pods that Kueue admitted belong. */
static void await_flavor(struct planning *planning)
{
    const struct queue_input *queue = &planning->input->queue;
    const char *name = planning->job->queue_name, *flavor = queue->missing_flavor;
    if (name && *name && queue->state == OPTIONAL_UNKNOWN)
        planning_hold(planning, "Queued",
                      planning_format(planning, "where Kueue wants the pods is not known yet%s%s",
                                      queue->refusal && *queue->refusal ? ": " : "",
                                      queue->refusal ? queue->refusal : ""));
    if (!flavor)
        return;
    planning_hold(planning, "FlavorMissing",
                  planning_format(planning, "Kueue assigned the ResourceFlavor %s, which does not exist", flavor));
}

bool create_may_be_tried(struct planning *planning)
{
    return planning->obstacle.kind == OBSTACLE_NONE || is_time(planning, planning->obstacle.retry_ms);
}

bool create_is_due(struct planning *planning)
{
    bool backs_off;
    return create_may_be_tried(planning) && !obstacle_is_final(planning->obstacle.kind) &&
           may_create_pods(planning, &backs_off);
}

bool create_ends_job(struct planning *planning)
{
    const struct obstacle *obstacle = &planning->obstacle;
    if (!obstacle_is_final(obstacle->kind))
        return false;
    planning_finish(planning, CONDITION_FAILED, obstacle_reason(obstacle->kind),
                    planning_format(planning, "%s", obstacle->message));
    return true;
}

static void ask_for_service(struct planning *planning)
{
    const struct service_view *service = planning->input->service;
    if (!service) {
        planning_act(planning, ACTION_CREATE_SERVICE, NULL);
    } else if (!has_service(planning)) {
        struct owner owner = {service->owner_uid, service->owner_kind, service->owner_name, service->of_job};
        SCOPED_FREE char *message = owner_name_taken("services", service->name, &owner);
        planning_hold(planning, "NameTaken", planning_format(planning, "%s", message));
    }
}

bool create_plan(struct planning *planning)
{
    await_flavor(planning);
    if (create_ends_job(planning) || !create_may_be_tried(planning))
        return true;
    ask_for_service(planning);
    create_pods(planning);
    return false;
}
