/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/conditions.h"

/* Names of pods and of the Service follow from the job's name: an earlier job's children would be in the way. They go
 * when the garbage collector gets to them. */
bool leftovers_plan(struct planning *planning)
{
    const struct service_view *service = planning->input->service;
    bool service_left = service && service->of_job && !service_view_is_of(service, planning->job->uid);
    if (planning->old->attempt > 0 || (planning->crew.leftover_count == 0 && !service_left))
        return false;
    const char *message =
        planning_format(planning, "waiting until %zu pods%s of an earlier job of the same name are gone",
                        planning->crew.leftover_count, service_left ? " and the Service" : "");
    condition_set(planning, CONDITION_SCHEDULED, CONDITION_FALSE, "WaitingForPredecessor", message);
    return true;
}
