/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces a crew's key that a user has removed. The operator may not read Secrets, so it notices this by a create that changes nothing,
 * before pods join an existing crew and if a pod with a node does not start. Running pods keep the key that they were started with, and
 * new pods would have another. So that the crew is not split, it starts over from its checkpoint. The new attempt is counted in the
 * status first, and its key is made once the old attempt's pods are gone. If the operator is killed in between, its successor finds the
 * same state.
 */
#include "operator/controller/objects/crew_key.h"
#include "operator/controller/plan/policies.h"

#define STUCK_MS 20000 /* images may take longer, so that it is asked now and then */
#define ASK_AGAIN_MS 60000

/* It has a node, and none of its containers has been made: images, volumes or the key are waited for. */
static bool is_starting(const struct pod_view *pod)
{
    return pod->phase == POD_PENDING && pod->startable_ms != FIELD_UNSET && !pod->begun && !pod_view_deleting(pod);
}

/* Requeues for the first that may be one. */
static bool has_stuck_pod(struct planning *planning)
{
    bool found = false;
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        const struct pod_view *pod = planning->crew.slots[i].occupant;
        if (!pod || !is_starting(pod))
            continue;
        if (planning->now_ms < pod->startable_ms + STUCK_MS)
            planning_requeue(planning, pod->startable_ms + STUCK_MS);
        else
            found = true;
    }
    return found;
}

/* One that may have the key that was: also where the cache does not show yet that it has come to a node. */
static bool has_holder(const struct crew *crew)
{
    for (size_t i = 0; i < crew->slot_count; i++) {
        const struct pod_view *pod = crew->slots[i].occupant;
        if (pod && pod_view_alive(pod))
            return true;
    }
    return false;
}

static void start_over(struct planning *planning)
{
    const char *what = "the crew's key was removed: the crew starts over from its last checkpoint under a new one";
    planning->next->attempt++;
    planning_promise_successors(planning, NULL);
    condition_set(planning, CONDITION_RESTARTING, CONDITION_TRUE, "CrewKeyRenewed", what);
    planning_event(planning, true, "CrewKeyRenewed", "RestartCrew", what);
}

bool crew_key_plan(struct planning *planning)
{
    const struct service_view *service = planning->input->service;
    const struct crew_key_look *look = &planning->input->memory.key_look;
    if (!crew_key_is_needed(planning->job) || !service) /* which is made after the key */
        return false;
    bool due = create_is_due(planning), stuck = has_stuck_pod(planning);
    bool known = look->incarnation == planning->old->incarnation;
    if (!due && !stuck)
        return false;
    if (!stuck && create_promises_again(planning)) /* and what is heard of the key counts for one incarnation */
        return false;
    if (known && stuck && planning->now_ms < look->at_ms + ASK_AGAIN_MS)
        planning_requeue(planning, look->at_ms + ASK_AGAIN_MS);
    else if (stuck)
        known = false;
    if (!known)
        planning_act(planning, ACTION_LOOK_FOR_KEY, NULL);
    else if (!look->there && has_holder(&planning->crew))
        start_over(planning);
    else if (!look->there)
        planning_act(planning, ACTION_CREATE_KEY, NULL);
    return !known || !look->there;
}
