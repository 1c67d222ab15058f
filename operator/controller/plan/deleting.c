/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/conditions.h"
#include "operator/controller/plan/first_crew.h"

bool deleting_is_asked(const struct training_job *job)
{
    return job->deleted_ms != FIELD_UNSET;
}

bool deleting_says_nothing(const struct planning *planning)
{
    bool unseen = first_crew_may_lie_ahead(planning->old) && planning->crew.alive_count == 0;
    return deleting_is_asked(planning->job) && (unseen || planning->crew.ahead);
}

/* A finalizer keeps the job, or the end of its pods is waited for (kubectl delete --cascade=foreground). What is made now
 * would have no owner soon, and an end of a pod is nobody's fault any more. */
bool deleting_plan(struct planning *planning)
{
    return deleting_is_asked(planning->job);
}
