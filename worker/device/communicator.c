/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/communicator.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/environment.h"
#include "worker/device/backend.h"

static atomic_bool stuck;

void communicator_version_text(int version, char text[COMMUNICATOR_VERSION_MAX])
{
    snprintf(text, COMMUNICATOR_VERSION_MAX, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

void communicator_set_environment(void)
{
    const char *peers = getenv(ENV_GPU_PEERS);
    (void)setenv("NCCL_ALGO", "Ring", 0);
    (void)setenv("NCCL_PROTO", "Simple", 0);
    if (peers && strcmp(peers, "0") == 0)
        (void)setenv("NCCL_P2P_DISABLE", "1", 0);
}

int communicator_prepare(struct device *device, struct communicator_capabilities *ret_capabilities, struct error *error)
{
    if (device->backend->communicators == NULL)
        return error_set(error, ERROR_UNSUPPORTED,
                         "strategy.collective: NCCL sums on GPUs, and this worker computes on a CPU; take Auto, or "
                         "devices.type GPU");
    return device->backend->communicators->prepare(device, ret_capabilities, error);
}

int communicator_identify(struct device *device, struct communicator_id *ret_id, struct error *error)
{
    return device->backend->communicators->identify(device, ret_id, error);
}

int communicator_start(struct device *const *devices, unsigned count, const struct communicator_id *id, unsigned first,
                       unsigned size, struct communicator **ret_communicator, struct error *error)
{
    return devices[0]->backend->communicators->start(devices, count, id, first, size, ret_communicator, error);
}

int communicator_poll(struct communicator *communicator, bool *ret_enqueued, struct error *error)
{
    return communicator->backend->poll(communicator, ret_enqueued, error);
}

int communicator_enqueue(struct communicator *communicator, struct device_stream *const *streams,
                         const struct communicator_operation *operations, unsigned count, struct error *error)
{
    return communicator->backend->enqueue(communicator, streams, operations, count, error);
}

struct communicator *communicator_part(struct communicator *communicator, unsigned device)
{
    return communicator->backend->part(communicator, device);
}

int communicator_abort(struct communicator *communicator, int64_t deadline_ms, struct error *error)
{
    return communicator == NULL ? 0 : communicator->backend->abort(communicator, deadline_ms, error);
}

void communicator_tell_stuck(void)
{
    atomic_store(&stuck, true);
}

bool communicator_is_stuck(void)
{
    return atomic_load(&stuck);
}
