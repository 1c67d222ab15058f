/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/compute_threads.h"

#include "worker/device/device.h"
#include "worker/model/program.h"

int compute_threads(const struct arguments *arguments, const struct identity *identity, const struct crew *crew)
{
    if (arguments->threads > 0)
        return arguments->threads;
    if (identity->threads > 0)
        return identity->threads;
    int share = device_available_cpus() / (crew != NULL ? (int)crew_members_here(crew, identity) : 1);
    return share > 0 ? share : 1;
}

void compute_threads_set_environment(const struct arguments *arguments, const struct identity *identity,
                                     const struct job_document *job)
{
    struct crew crew = {0};
    if (job != NULL && crew_read(job, identity, &crew, NULL) < 0) /* trainer_open_crew says why */
        return;
    program_set_environment(compute_threads(arguments, identity, job != NULL ? &crew : NULL));
    crew_release(&crew);
}
