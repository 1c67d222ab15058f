/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/policies.h"

/* The spec says so little that pods which run would have no place in the crew. */
static bool crew_is_unknown(const struct planning *planning)
{
    const struct crew *crew = &planning->crew;
    for (size_t i = 0; i < crew->superseded_count; i++) {
        const struct pod_view *pod = crew->superseded[i];
        if (pod->member && pod->current && job_role_count(planning->job, pod->role) == 0)
            return true;
    }
    return crew->slot_count == 0;
}

bool invalid_plan(struct planning *planning)
{
    const char *invalid = planning->input->invalid;
    if (!invalid)
        return false;
    if (!planning_has_run(planning)) {
        planning_finish(planning, CONDITION_FAILED, "InvalidSpec", planning_format(planning, "%s", invalid));
        return true;
    }
    planning_hold(planning, "InvalidSpec", invalid_message(planning));
    return crew_is_unknown(planning);
}

const char *invalid_message(struct planning *planning)
{
    return planning_format(
        planning,
        "an earlier operator has accepted the job, so its pods run on; this one refuses its spec and "
        "creates no pods from it: %s",
        planning->input->invalid);
}
