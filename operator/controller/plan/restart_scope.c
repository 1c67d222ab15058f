/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/restart_scope.h"

#include "operator/controller/objects/crew_roles.h"
#include "operator/controller/plan/crew.h"

static bool is_chief(const struct training_job *job, enum role role, int64_t index)
{
    return role == crew_chief_role(job) && index == 0;
}

/* TensorFlow's coordinator gives a lost worker's share to the others and takes its successor in; torchrun's survivors
 * meet again where the first of them listens. */
static bool outlives_a_worker(const struct training_job *job)
{
    return job->framework == FRAMEWORK_TENSORFLOW ? job->roles[ROLE_PS].count > 0 : job->elastic.enabled;
}

static enum restart_scope automatic(const struct training_job *job, enum role role, int64_t index)
{
    if (job->framework == FRAMEWORK_COXSWAIN)
        return RESTART_SCOPE_POD;
    bool replaceable = role == ROLE_WORKER && !is_chief(job, role, index);
    return replaceable && outlives_a_worker(job) ? RESTART_SCOPE_POD : RESTART_SCOPE_JOB;
}

enum restart_scope restart_scope_of(const struct training_job *job, enum role role, int64_t index)
{
    if (role == ROLE_EVALUATOR)
        return RESTART_SCOPE_POD;
    if (job->run_policy.restart_scope != RESTART_SCOPE_AUTO)
        return job->run_policy.restart_scope;
    return automatic(job, role, index);
}
