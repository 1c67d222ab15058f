/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/first_crew.h"

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
