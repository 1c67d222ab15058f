/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/crew_roles.h"

#include "common/job/job_roles.h"

bool crew_has_peers(const struct training_job *job)
{
    int64_t pods = job->elastic.enabled ? job->elastic.max_workers : 0;
    for (int role = 0; role < ROLE_COUNT; role++)
        pods += job_role_count(job, (enum role)role);
    return pods > 1;
}

enum role crew_chief_role(const struct training_job *job)
{
    return job->roles[ROLE_CHIEF].count > 0 ? ROLE_CHIEF : ROLE_WORKER;
}

bool crew_has_rank(enum role role)
{
    return role != ROLE_EVALUATOR;
}

static int64_t ranks_before(const struct training_job *job, int end)
{
    int64_t count = 0;
    for (int role = 0; role < end; role++)
        count += crew_has_rank((enum role)role) ? job_role_count(job, (enum role)role) : 0;
    return count;
}

int64_t crew_rank(const struct training_job *job, enum role role, int64_t index)
{
    return ranks_before(job, (int)role) + index;
}

int64_t crew_world_size(const struct training_job *job)
{
    return ranks_before(job, ROLE_COUNT);
}
