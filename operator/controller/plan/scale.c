/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "operator/controller/plan/policies.h"

static bool is_fresh(const struct slot *slot)
{
    return slot->fresh;
}

static void tell(struct planning *planning, int64_t before, int64_t after)
{
    planning_event(planning, false, "Scaled", "Scale",
                   planning_format(planning, "from %" PRId64 " to %" PRId64 " workers", before, after));
}

/* The status acknowledges the new number first; pods above it are superseded, and deleted once the
 * status says so. No pods are added once training is ending. */
bool scale_plan(struct planning *planning)
{
    int64_t before = planning->old->workers, after = planning->job->document.workers;
    if (!planning->job->elastic.enabled || before == after)
        return false;
    if (after > before && planning->finishing == FINISHING_WAITS)
        return false;
    if (after > before) {
        planning_promise(planning, is_fresh);
        tell(planning, before, after);
    }
    return true;
}

/* Must be part of the next write of the status: promises above the new size no longer hold, and if the job grew again before the status
 * had it, indices whose end was judged would seem to be lost. */
void scale_down(struct planning *planning)
{
    int64_t after = planning->job->document.workers;
    bool known = job_role_count(planning->job, ROLE_WORKER) > 0;
    if (!planning->job->elastic.enabled || !known || planning->old->attempt == 0 || status_terminal(planning->old) ||
        planning->next->workers <= after)
        return;
    planning->next->workers = after;
    tell(planning, planning->old->workers, after);
}
