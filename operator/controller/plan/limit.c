/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/limit.h"

#include <inttypes.h>

#include "operator/controller/plan/policies.h"
#include "operator/controller/plan/take_back.h"

void limit_count(struct job_status *status, enum ending_kind kind)
{
    status->restarts.failures += kind == ENDING_FAILURE;
    status->restarts.out_of_memory += kind == ENDING_OUT_OF_MEMORY;
    status->restarts.disruptions += kind == ENDING_DISRUPTION;
    status->restarts.ignored += kind == ENDING_IGNORED;
    status->restart_count++;
}

bool limit_exceeded(const struct job_status *status, const struct run_policy *policy)
{
    return status->restarts.failures + status->restarts.out_of_memory > policy->backoff_limit;
}

void limit_finish(struct planning *planning, const char *last)
{
    planning_finish(planning, CONDITION_FAILED, "BackoffLimitExceeded",
                    planning_format(planning, "%s%sbackoffLimit %" PRId64 " exceeded", last ? last : "",
                                    last ? "; " : "", planning->job->run_policy.backoff_limit));
}

const char *limit_wait_words(struct planning *planning)
{
    return planning_format(planning,
                           "backoffLimit %" PRId64
                           " exceeded: the job fails unless a disruption (eviction, node loss) is found to "
                           "be the cause within %d s",
                           planning->job->run_policy.backoff_limit, TAKE_BACK_MS / 1000);
}

bool limit_plan(struct planning *planning)
{
    const struct condition *restarting = &planning->old->conditions[CONDITION_RESTARTING];
    if (!limit_exceeded(planning->next, &planning->job->run_policy))
        return false;
    if (take_back_may_follow(planning))
        planning_hold(planning, "BackoffLimitSpent", limit_wait_words(planning));
    else
        limit_finish(planning, restarting->status == CONDITION_TRUE ? restarting->message : NULL);
    return true;
}
