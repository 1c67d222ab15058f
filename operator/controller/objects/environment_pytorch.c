/* SPDX-License-Identifier: Apache-2.0
 *
 * What torch.distributed reads (init_method env://) and, as PET_*, the defaults of
 * torchrun's options. A pod counts as one process; where torchrun starts several,
 * it tells each its own WORLD_SIZE and RANK.
 */
#include <inttypes.h>

#include "common/job/job_roles.h"
#include "common/memory.h"
#include "operator/controller/objects/environment_framework.h"
#include "operator/controller/objects/environment_list.h"

static void add_nodes(const struct training_job *job, int64_t size, struct json *list)
{
    const struct elastic_spec *elastic = &job->elastic;
    if (!elastic->enabled) {
        environment_add_number(list, "PET_NNODES", size);
        return;
    }
    int64_t others = size - job_role_count(job, ROLE_WORKER);
    SCOPED_FREE char *range =
        memory_format("%" PRId64 ":%" PRId64, elastic->min_workers + others, elastic->max_workers + others);
    environment_add(list, "PET_NNODES", range);
}

static void add_rendezvous(const struct training_job *job, const char *host, int64_t port, struct json *list)
{
    SCOPED_FREE char *endpoint = memory_format("%s:%" PRId64, host, port);
    environment_add(list, "PET_RDZV_ENDPOINT", endpoint);
    environment_add(list, "PET_RDZV_BACKEND", "c10d");
    environment_add_number(list, "PET_MAX_RESTARTS", job->run_policy.backoff_limit);
}

static void add(const struct training_job *job, enum role role, int64_t index, const char *document, struct json *list)
{
    struct crew_meeting meeting;
    (void)document;
    environment_add(list, "PYTHONUNBUFFERED", "1");
    if (!crew_meeting(job, role, index, &meeting))
        return;
    SCOPED_FREE char *host = meeting.host;
    environment_add(list, "MASTER_ADDR", host);
    environment_add_number(list, "MASTER_PORT", meeting.port);
    environment_add_number(list, "WORLD_SIZE", meeting.size);
    environment_add_number(list, "RANK", meeting.rank);
    add_nodes(job, meeting.size, list);
    environment_add_number(list, "PET_NPROC_PER_NODE", job->document.devices.count);
    environment_add_number(list, "PET_NODE_RANK", meeting.rank);
    environment_add(list, "PET_MASTER_ADDR", host);
    environment_add_number(list, "PET_MASTER_PORT", meeting.port);
    if (job->elastic.enabled)
        add_rendezvous(job, host, meeting.port, list);
}

/* Variables for ranks and the rendezvous. A port named "crew" in the template moves the ports, for all pods alike. */
static const char *const reserved[] = {
    "MASTER_ADDR",     "MASTER_PORT",     "WORLD_SIZE",        "RANK", "PET_NNODES", "PET_NODE_RANK",
    "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_RDZV_ENDPOINT", NULL};

const struct environment_framework environment_pytorch = {NULL, add, reserved};
