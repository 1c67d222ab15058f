/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/object_storage.h"
#include "operator/controller/observed/owner.h"
#include "operator/controller/plan/back_off.h"
#include "operator/controller/plan/policies.h"

static bool slot_to_fill(const struct slot *slot)
{
    return slot->promised && !slot->occupant && !slot->blocked;
}

#define LOOK_AGAIN_MS 1000

/* A chief that is asked to end uploads its last checkpoint first, which takes longer than a save to a disk. Its successor's claim of the
 * bucket would prevent that, so the successor waits until the chief is gone, at most for its grace period. Returns when that ends;
 * FIELD_UNSET: it need not wait. */
static int64_t upload_end(const struct planning *planning, const struct slot *slot)
{
    if (!slot->ending || slot != crew_chief(&planning->crew, planning->job) ||
        !object_storage_takes_checkpoints(planning->job))
        return FIELD_UNSET;
    return pod_view_deleting(slot->ending) ? slot->ending->deletion_ms + slot->ending->grace_ms
                                           : planning->now_ms + LOOK_AGAIN_MS;
}

/* Returns until when the slot waits; FIELD_UNSET: it does not wait, or the wait is over. */
static int64_t back_off_end(const struct planning *planning, const struct slot *slot)
{
    int64_t until_ms = back_off_until(planning, slot), upload_ms = upload_end(planning, slot);
    if (upload_ms != FIELD_UNSET && (until_ms == FIELD_UNSET || upload_ms > until_ms))
        until_ms = upload_ms;
    return until_ms != FIELD_UNSET && until_ms > planning->now_ms ? until_ms : FIELD_UNSET;
}

bool create_backs_off(const struct planning *planning, const struct slot *slot)
{
    return back_off_end(planning, slot) != FIELD_UNSET;
}

static bool slot_is_due(const struct planning *planning, const struct slot *slot)
{
    return slot_to_fill(slot) && !create_backs_off(planning, slot);
}

/* Requeues the job for the slots that still wait. */
static bool has_slot_that_is_due(struct planning *planning)
{
    const struct crew *crew = &planning->crew;
    bool found = false;
    for (size_t i = 0; i < crew->slot_count; i++) {
        const struct slot *slot = &crew->slots[i];
        if (slot_is_due(planning, slot))
            found = true;
        else if (slot_to_fill(slot))
            planning_requeue(planning, back_off_end(planning, slot));
    }
    return found;
}

/* Returns whether the job's Service exists; no pod is created before. Without it the pods' host
 * names would not resolve, or, if another owner has a Service of that name, would resolve to other
 * pods. */
static bool has_service(const struct planning *planning)
{
    const struct service_view *service = planning->input->service;
    return service && service_view_is_of(service, planning->job->uid);
}

static bool may_create_pods(struct planning *planning)
{
    return !planning->hold_reason && has_service(planning) && has_slot_that_is_due(planning) &&
           planning->crew.earlier_count == 0;
}

bool create_promises_again(const struct planning *planning)
{
    return planning->old->incarnation <= planning->input->memory.inherited_incarnation;
}

/* Looks for pods that may exist already, under any incarnation. No other pod is created or promised
 * in their place. */
static bool look_for_unsure(struct planning *planning)
{
    bool found = false;
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        const struct slot *slot = &planning->crew.slots[i];
        if (slot->unsure_incarnation == 0 || !slot_is_due(planning, slot))
            continue;
        planning_look_for_pod(planning, slot);
        found = true;
    }
    return found;
}

static void create_pods(struct planning *planning)
{
    if (!may_create_pods(planning))
        return;
    bool looks = look_for_unsure(planning);
    if (create_promises_again(planning)) {
        if (!looks)
            planning_promise_again(planning);
        return;
    }
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        const struct slot *slot = &planning->crew.slots[i];
        if (slot_is_due(planning, slot) && slot->unsure_incarnation == 0)
            planning_create_pod(planning, slot->role, slot->index);
    }
}

/* Waits until the flavors that Kueue assigned to the pods are known. */
static void await_flavor(struct planning *planning)
{
    const struct queue_input *queue = &planning->input->queue;
    const char *name = planning->job->queue_name, *flavor = queue->missing_flavor;
    if (name && *name && queue->state == OPTIONAL_UNKNOWN)
        planning_hold(planning, "Queued",
                      planning_format(planning, "the nodes that Kueue has chosen for the pods are not known yet%s%s",
                                      queue->refusal && *queue->refusal ? ": " : "",
                                      queue->refusal ? queue->refusal : ""));
    if (!flavor)
        return;
    planning_hold(planning, "FlavorMissing",
                  planning_format(planning, "Kueue assigned the ResourceFlavor %s, which does not exist", flavor));
}

bool create_may_be_tried(struct planning *planning)
{
    int64_t retry_ms = planning->obstacle.retry_ms;
    if (planning->input->invalid)
        return false;
    if (planning->obstacle.kind == OBSTACLE_NONE || retry_ms == FIELD_UNSET || retry_ms <= planning->now_ms)
        return true;
    planning_requeue(planning, retry_ms);
    return false;
}

static bool ends_job(const struct planning *planning)
{
    return obstacle_is_objects_fault(planning->obstacle.kind) && !planning->plan->has_run;
}

bool create_is_due(struct planning *planning)
{
    return create_may_be_tried(planning) && !ends_job(planning) && may_create_pods(planning);
}

bool create_ends_job(struct planning *planning)
{
    const struct obstacle *obstacle = &planning->obstacle;
    if (!ends_job(planning))
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
