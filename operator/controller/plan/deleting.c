/* SPDX-License-Identifier: Apache-2.0 */
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

/* While a job is being deleted, a finalizer keeps it, or Kubernetes waits for the end of its pods (kubectl delete --cascade=foreground).
 * New objects would soon have no owner, and an end of a pod does not count any more. */
bool deleting_plan(struct planning *planning)
{
    return deleting_is_asked(planning->job);
}
