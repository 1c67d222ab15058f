/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/limit.h"

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
