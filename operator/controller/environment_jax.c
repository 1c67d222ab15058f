/* SPDX-License-Identifier: Apache-2.0
 *
 * What jax.distributed.initialize is given. JAX reads the coordinator's address
 * itself; how many processes there are and which one this is, a script hands on.
 * The names without JAX_ are those of Kubeflow's JAXJob.
 */
#include <inttypes.h>

#include "common/contract/environment.h"
#include "common/memory.h"
#include "operator/controller/crew.h"
#include "operator/controller/crew_ranks.h"
#include "operator/controller/environment_framework.h"
#include "operator/controller/environment_list.h"

static void add(const struct training_job *job, enum role role, int64_t index, const char *document, struct json *list)
{
    (void)document;
    environment_add(list, "PYTHONUNBUFFERED", "1");
    if (!crew_has_rank(role))
        return;
    enum role host_role = crew_chief_role(job);
    SCOPED_FREE char *host = crew_host(job, host_role, 0);
    int64_t port = crew_port(job, host_role), rank = crew_rank(job, role, index), size = crew_world_size(job);
    SCOPED_FREE char *address = memory_format("%s:%" PRId64, host, port);
    environment_add(list, "JAX_COORDINATOR_ADDRESS", address);
    environment_add_number(list, "JAX_NUM_PROCESSES", size);
    environment_add_number(list, "JAX_PROCESS_ID", rank);
    environment_add(list, "COORDINATOR_ADDRESS", host);
    environment_add_number(list, "COORDINATOR_PORT", port);
    environment_add_number(list, "NUM_PROCESSES", size);
    environment_add_number(list, "PROCESS_ID", rank);
}

static const char *const reserved[] = {
    "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "COORDINATOR_ADDRESS",
    "COORDINATOR_PORT",        "NUM_PROCESSES",     "PROCESS_ID",     NULL};

const struct environment_framework environment_jax = {NULL, add, reserved};
