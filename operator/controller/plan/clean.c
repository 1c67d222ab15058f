/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/policies.h"

/* After a success, the other pods get some time to end by themselves, which takes moments. An end in the future means that the clock was
 * set back, and does not show how long ago it was. */
static bool is_settling(struct planning *planning)
{
    if (!condition_is(planning->old, CONDITION_SUCCEEDED, CONDITION_TRUE))
        return false;
    int64_t ended_ms = planning->old->completion_ms;
    return planning->now_ms >= ended_ms && planning->now_ms < ended_ms + planning->input->options->settle_ms;
}

/* A create that was on the wire when the job ended: promised, never seen until now. */
static bool is_stray(const struct slot *slot)
{
    return slot->promised && slot->occupant && pod_view_alive(slot->occupant);
}

static void clean_strays(struct planning *planning)
{
    for (size_t i = 0; i < planning->crew.slot_count; i++)
        if (is_stray(&planning->crew.slots[i]))
            planning_delete_pod(planning, planning->crew.slots[i].occupant);
}

static void clean_pod(struct planning *planning, const struct pod_view *pod, bool settling)
{
    bool running = pod_view_alive(pod);
    if (planning->job->run_policy.clean_pod_policy == CLEAN_NONE ||
        (planning->job->run_policy.clean_pod_policy == CLEAN_RUNNING && !running))
        return;
    if (running && settling)
        planning_requeue(planning, planning->old->completion_ms + planning->input->options->settle_ms);
    else
        planning_delete_pod(planning, pod);
}

bool clean_plan(struct planning *planning)
{
    if (!status_terminal(planning->old))
        return false;
    bool settling = is_settling(planning);
    for (size_t i = 0; i < planning->crew.slot_count; i++)
        if (planning->crew.slots[i].occupant && !is_stray(&planning->crew.slots[i]))
            clean_pod(planning, planning->crew.slots[i].occupant, settling);
    for (size_t i = 0; i < planning->crew.superseded_count; i++)
        clean_pod(planning, planning->crew.superseded[i], settling);
    clean_strays(planning);
    gang_dismiss(planning);
    return true;
}
