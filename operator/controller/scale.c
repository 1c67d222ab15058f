/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "operator/controller/planning.h"

static bool is_fresh(const struct slot *slot)
{
    return slot->fresh;
}

/* The new number is acknowledged first; pods above it are superseded, and go once the status says so. */
bool scale_plan(struct planning *planning)
{
    int64_t before = planning->old->workers, after = planning->job->document.workers;
    if (!planning->job->elastic.enabled || before == after)
        return false;
    planning->next->workers = after;
    if (after > before)
        planning_promise(planning, is_fresh);
    planning_event(planning, false, "Scaled", "Scale",
                   planning_format(planning, "from %" PRId64 " to %" PRId64 " workers", before, after));
    return true;
}
