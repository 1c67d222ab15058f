/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/crew_ranks.h"

#include "operator/controller/plan/crew.h"

bool crew_has_rank(enum role role)
{
    return role != ROLE_EVALUATOR;
}

static int64_t ranks_before(const struct training_job *job, int end)
{
    int64_t count = 0;
    for (int role = 0; role < end; role++)
        count += crew_has_rank((enum role)role) ? crew_role_count(job, (enum role)role) : 0;
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
