/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/restart_scope.h"

static enum restart_scope automatic(const struct training_job *job, enum role role, int64_t index)
{
    switch (job->framework) {
    case FRAMEWORK_COXSWAIN:
        return RESTART_SCOPE_POD;
    case FRAMEWORK_TENSORFLOW:
        return job->document.strategy.type == STRATEGY_PARAMETER_SERVER && role == ROLE_WORKER ? RESTART_SCOPE_POD
                                                                                               : RESTART_SCOPE_JOB;
    case FRAMEWORK_PYTORCH: /* worker 0 is the rendezvous host */
        return job->elastic.enabled && role == ROLE_WORKER && index > 0 ? RESTART_SCOPE_POD : RESTART_SCOPE_JOB;
    }
    return RESTART_SCOPE_JOB;
}

enum restart_scope restart_scope_of(const struct training_job *job, enum role role, int64_t index)
{
    if (role == ROLE_EVALUATOR)
        return RESTART_SCOPE_POD;
    if (job->run_policy.restart_scope != RESTART_SCOPE_AUTO)
        return job->run_policy.restart_scope;
    return automatic(job, role, index);
}
