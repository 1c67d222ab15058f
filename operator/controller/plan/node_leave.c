/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/node_leave.h"

#include <string.h>

#include "operator/controller/plan/conditions.h"

const char *node_leave_reason(struct planning *planning, const struct node_trouble *trouble)
{
    const struct run_policy *policy = &planning->job->run_policy;
    if (*trouble->notice)
        return planning_format(planning, "its node %s is about to be removed (taint %s)", trouble->name,
                               trouble->notice);
    for (unsigned i = 0; i < policy->avoided_condition_count; i++)
        if (node_trouble_has(trouble, policy->avoided_conditions[i]))
            return planning_format(planning, "its node %s has the condition %s", trouble->name,
                                   policy->avoided_conditions[i]);
    return NULL;
}

static const char *reason_to_leave(struct planning *planning, const struct pod_view *pod)
{
    const struct plan_input *input = planning->input;
    for (size_t i = 0; i < input->trouble_count; i++)
        if (strcmp(input->troubles[i]->name, pod->node) == 0)
            return node_leave_reason(planning, input->troubles[i]);
    return NULL;
}

bool node_leave_plan(struct planning *planning)
{
    if (planning->input->trouble_count == 0 || status_terminal(planning->next))
        return false;
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        const struct pod_view *pod = planning->crew.slots[i].occupant;
        if (!pod || *pod->node == '\0' || pod_view_ended(pod) || pod_view_deleting(pod))
            continue;
        const char *reason = reason_to_leave(planning, pod);
        if (!reason)
            continue;
        planning_delete_pod(planning, pod);
        planning_event_of_newest(
            planning, "NodeLeft", "ReplacePod",
            planning_format(planning, "pod %s is ended, so that it can save and be replaced: %s", pod->name, reason));
    }
    return false;
}
