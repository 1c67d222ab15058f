/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/environment_tpu.h"

#include <string.h>

#include "common/buffer.h"
#include "common/contract/environment.h"
#include "operator/controller/objects/crew_roles.h"
#include "operator/controller/objects/environment_list.h"

#define WORKER_HOSTNAMES "TPU_WORKER_HOSTNAMES"
#define WORKER_ID "TPU_WORKER_ID"
#define LONE_HOST "localhost" /* a slice of one host, as Google Kubernetes Engine names it */

static bool is_on_tpus(const struct training_job *job)
{
    return job->document.devices.type == DEVICE_TYPE_TPU;
}

/* Our own workers: each pod is a slice of its own, which waits for no other host. */
static bool is_one_slice(const struct training_job *job)
{
    return job->framework != FRAMEWORK_COXSWAIN;
}

/* By rank, with commas between. */
static void append_hosts(const struct training_job *job, struct buffer *out)
{
    for (int role = 0; role < ROLE_COUNT; role++)
        for (int64_t i = 0; crew_has_rank((enum role)role) && i < crew_role_count(job, (enum role)role); i++) {
            SCOPED_FREE char *host = crew_host(job, (enum role)role, i);
            buffer_format(out, "%s%s", out->length > 0 ? "," : "", host);
        }
}

int environment_tpu_check(const struct training_job *job, struct error *error)
{
    if (!is_on_tpus(job) || !is_one_slice(job))
        return 0;
    SCOPED_BUFFER hosts = BUFFER_INIT(SIZE_MAX / 2);
    append_hosts(job, &hosts);
    if (hosts.length > JOB_DOCUMENT_MAX)
        return error_set(error, ERROR_TOO_LARGE,
                         WORKER_HOSTNAMES ", which names every pod, would take %zu KiB; an environment variable holds "
                                          "%d KiB: use fewer pods, or shorter names of job and namespace",
                         (hosts.length + 1023) / 1024, JOB_DOCUMENT_MAX / 1024);
    return 0;
}

void environment_add_tpu(const struct training_job *job, enum role role, int64_t index, struct json *list)
{
    if (!is_on_tpus(job) || !crew_has_rank(role))
        return;
    SCOPED_BUFFER hosts = BUFFER_INIT(SIZE_MAX / 2);
    if (is_one_slice(job))
        append_hosts(job, &hosts);
    environment_add_number(list, WORKER_ID, is_one_slice(job) ? crew_rank(job, role, index) : 0);
    environment_add(list, WORKER_HOSTNAMES, is_one_slice(job) ? buffer_text(&hosts) : LONE_HOST);
}

bool environment_tpu_is_reserved(const char *name)
{
    return strcmp(name, WORKER_HOSTNAMES) == 0 || strcmp(name, WORKER_ID) == 0;
}
