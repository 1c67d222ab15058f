/* SPDX-License-Identifier: Apache-2.0
 *
 * What jax.distributed.initialize is given. JAX reads the coordinator's address
 * itself; how many processes there are and which one this is, a script hands on.
 * The names without JAX_ are those of Kubeflow's JAXJob.
 */
#include <inttypes.h>

#include "common/memory.h"
#include "operator/controller/objects/environment_framework.h"
#include "operator/controller/objects/environment_list.h"

static void add(const struct training_job *job, enum role role, int64_t index, const char *document, struct json *list)
{
    struct crew_meeting meeting;
    (void)document;
    environment_add(list, "PYTHONUNBUFFERED", "1");
    if (!crew_meeting(job, role, index, &meeting))
        return;
    SCOPED_FREE char *host = meeting.host;
    SCOPED_FREE char *address = memory_format("%s:%" PRId64, host, meeting.port);
    environment_add(list, "JAX_COORDINATOR_ADDRESS", address);
    environment_add_number(list, "JAX_NUM_PROCESSES", meeting.size);
    environment_add_number(list, "JAX_PROCESS_ID", meeting.rank);
    environment_add(list, "COORDINATOR_ADDRESS", host);
    environment_add_number(list, "COORDINATOR_PORT", meeting.port);
    environment_add_number(list, "NUM_PROCESSES", meeting.size);
    environment_add_number(list, "PROCESS_ID", meeting.rank);
}

static const char *const reserved[] = {
    "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "COORDINATOR_ADDRESS",
    "COORDINATOR_PORT",        "NUM_PROCESSES",     "PROCESS_ID",     NULL};

const struct environment_framework environment_jax = {NULL, add, reserved};
