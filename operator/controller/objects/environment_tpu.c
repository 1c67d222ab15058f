/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/environment_tpu.h"

#include "common/buffer.h"
#include "common/contract/environment.h"
#include "common/job/enum_words.h"
#include "common/job/job_roles.h"
#include "operator/controller/objects/crew_roles.h"
#include "operator/controller/objects/environment_list.h"

#define WORKER_HOSTNAMES "TPU_WORKER_HOSTNAMES"
#define WORKER_ID "TPU_WORKER_ID"
#define LONE_HOST "localhost" /* a slice of one host, as Google Kubernetes Engine names it */
/* What joins several slices (multislice). The port is the one that other launchers take. */
#define COORDINATOR_ADDRESS "MEGASCALE_COORDINATOR_ADDRESS"
#define COORDINATOR_PORT "MEGASCALE_PORT"
#define NUMBER_OF_SLICES "MEGASCALE_NUM_SLICES"
#define SLICE_ID "MEGASCALE_SLICE_ID"
#define PORT 8081

static bool is_on_tpus(const struct training_job *job)
{
    return job->document.devices.type == DEVICE_TYPE_TPU;
}

/* Our own workers: each pod is a slice of its own, which waits for no other host. */
static bool has_slices_of_hosts(const struct training_job *job)
{
    return job->framework != FRAMEWORK_COXSWAIN;
}

int64_t environment_tpu_slices(const struct training_job *job)
{
    int64_t slices = job->document.devices.slices, hosts = crew_world_size(job);
    bool divides = is_on_tpus(job) && slices > 1 && hosts > 0 && hosts % slices == 0;
    return divides ? slices : 1;
}

int64_t environment_tpu_hosts(const struct training_job *job)
{
    return crew_world_size(job) / environment_tpu_slices(job);
}

/* Those of one slice by rank, with commas between. */
static void append_hosts(const struct training_job *job, int64_t slice, struct buffer *out)
{
    int64_t hosts = environment_tpu_hosts(job);
    for (int role = 0; role < ROLE_COUNT; role++)
        for (int64_t i = 0; crew_has_rank((enum role)role) && i < job_role_count(job, (enum role)role); i++) {
            if (crew_rank(job, (enum role)role, i) / hosts != slice)
                continue;
            SCOPED_FREE char *host = crew_host(job, (enum role)role, i);
            buffer_format(out, "%s%s", out->length > 0 ? "," : "", host);
        }
}

int environment_tpu_check(const struct training_job *job, struct error *error)
{
    if (!is_on_tpus(job) || !has_slices_of_hosts(job))
        return 0;
    SCOPED_BUFFER hosts = BUFFER_INIT(SIZE_MAX / 2);
    append_hosts(job, environment_tpu_slices(job) - 1, &hosts); /* whose numbers are the longest */
    if (hosts.length > JOB_DOCUMENT_MAX)
        return error_set(error, ERROR_TOO_LARGE,
                         WORKER_HOSTNAMES ", which names every pod, would take %zu KiB; an environment variable holds "
                                          "%d KiB: use fewer pods, or shorter names of job and namespace",
                         (hosts.length + 1023) / 1024, JOB_DOCUMENT_MAX / 1024);
    return 0;
}

/* libtpu of the first host coordinates the slices. */
static void add_slices(const struct training_job *job, int64_t slice, struct json *list)
{
    SCOPED_FREE char *first = crew_host(job, crew_chief_role(job), 0);
    environment_add(list, COORDINATOR_ADDRESS, first);
    environment_add_number(list, COORDINATOR_PORT, PORT);
    environment_add_number(list, NUMBER_OF_SLICES, environment_tpu_slices(job));
    environment_add_number(list, SLICE_ID, slice);
}

void environment_add_tpu(const struct training_job *job, enum role role, int64_t index, struct json *list)
{
    if (!is_on_tpus(job) || !crew_has_rank(role))
        return;
    if (!has_slices_of_hosts(job)) {
        environment_add_number(list, WORKER_ID, 0);
        environment_add(list, WORKER_HOSTNAMES, LONE_HOST);
        return;
    }
    int64_t rank = crew_rank(job, role, index), hosts = environment_tpu_hosts(job);
    SCOPED_BUFFER names = BUFFER_INIT(SIZE_MAX / 2);
    append_hosts(job, rank / hosts, &names);
    environment_add_number(list, WORKER_ID, rank % hosts);
    environment_add(list, WORKER_HOSTNAMES, buffer_text(&names));
    if (environment_tpu_slices(job) > 1)
        add_slices(job, rank / hosts, list);
}

bool environment_tpu_is_reserved(const char *name)
{
    static const char *const names[] = {
        WORKER_HOSTNAMES, WORKER_ID, COORDINATOR_ADDRESS, COORDINATOR_PORT, NUMBER_OF_SLICES, SLICE_ID, NULL};
    return words_find(names, name) >= 0;
}
