/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/peer_staging.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/strategy/peer_message.h"

struct peer_staging {
    struct training_state *state;
    struct device_stream *stream;
    float *aside; /* on the device: parameters before an update, and after it what has come */
    float *part;  /* pinned: what peers read */
    float *inbox, *change;
    bool inbox_pinned, change_pinned;
};

static size_t part_bytes(int64_t elements)
{
    return sizeof(float) * ((size_t)elements < PEER_PART_MAX ? (size_t)elements : PEER_PART_MAX);
}

static int64_t flat_bytes(const struct peer_staging *staging)
{
    return staging->state->layout.elements * (int64_t)sizeof(float);
}

static int allocate(struct peer_staging *staging, struct error *error)
{
    struct device *device = staging->state->device;
    size_t part = part_bytes(staging->state->layout.elements);
    if (device_stream_new(device, &staging->stream, error) < 0 ||
        device_allocate(device, MEMORY_DEVICE, (size_t)flat_bytes(staging), (void **)&staging->aside, error) < 0)
        return -1;
    return device_allocate(device, MEMORY_SHARED, part, (void **)&staging->part, error);
}

int peer_staging_new(struct training_state *state, float *inbox, float *change, struct peer_staging **ret_staging,
                     struct error *error)
{
    struct peer_staging *staging = memory_allocate(1, sizeof *staging);
    *staging = (struct peer_staging){.state = state, .inbox = inbox, .change = change};
    if (allocate(staging, error) < 0) {
        peer_staging_free(staging);
        return -1;
    }
    staging->inbox_pinned = device_pin(state->device, inbox, (size_t)flat_bytes(staging));
    staging->change_pinned = device_pin(state->device, change, (size_t)flat_bytes(staging));
    *ret_staging = staging;
    return 0;
}

void peer_staging_free(struct peer_staging *staging)
{
    if (staging == NULL)
        return;
    struct device *device = staging->state->device;
    device_stream_free(staging->stream);
    if (staging->inbox_pinned)
        device_unpin(device, staging->inbox);
    if (staging->change_pinned)
        device_unpin(device, staging->change);
    device_free(device, staging->aside);
    device_free(device, staging->part);
    free(staging);
}

void peer_staging_plan(const struct device *device, int64_t elements, struct memory_plans *plans)
{
    plans->device.bytes[MEMORY_EXCHANGE] += elements * (int64_t)sizeof(float);
    plans->device.bytes[MEMORY_STREAMS] += device_stream_bytes(device);
    plans->host.bytes[MEMORY_EXCHANGE] += (int64_t)part_bytes(elements);
}

int peer_staging_wait(struct peer_staging *staging, struct error *error)
{
    return device_stream_synchronise(staging->stream, error);
}

int peer_staging_keep(struct peer_staging *staging, struct error *error)
{
    device_copy(staging->stream, &(struct copy){flat_bytes(staging), staging->state->parameters, staging->aside});
    return peer_staging_wait(staging, error);
}

/* Each operation rounds where the host's loop does, so the bits are those of its arithmetic. */
int peer_staging_share_out(struct peer_staging *staging, float share, struct error *error)
{
    struct device_stream *stream = staging->stream;
    float *parameters = staging->state->parameters;
    int64_t count = staging->state->layout.elements;
    device_axpy(stream, &(struct axpy){.count = count, .factor = -1, .x = staging->aside, .y = parameters});
    device_scale(stream, &(struct scale){.count = count, .factor = share, .x = parameters});
    device_copy(stream, &(struct copy){flat_bytes(staging), parameters, staging->change});
    device_axpy(stream, &(struct axpy){.count = count, .factor = 1, .x = staging->aside, .y = parameters});
    return peer_staging_wait(staging, error);
}

int peer_staging_take_in(struct peer_staging *staging, struct error *error)
{
    struct device_stream *stream = staging->stream;
    const struct training_state *state = staging->state;
    device_copy(stream, &(struct copy){flat_bytes(staging), staging->inbox, staging->aside});
    device_axpy(stream, &(struct axpy){
                            .count = state->layout.elements, .factor = 1, .x = staging->aside, .y = state->parameters});
    return peer_staging_wait(staging, error);
}

int peer_staging_read(struct peer_staging *staging, const float *from, uint64_t count, float *ret_values,
                      struct error *error)
{
    for (uint64_t done = 0, part; done < count; done += part) {
        part = count - done < PEER_PART_MAX ? count - done : PEER_PART_MAX;
        device_copy(staging->stream, &(struct copy){(int64_t)(part * sizeof(float)), from + done, staging->part});
        if (peer_staging_wait(staging, error) < 0)
            return -1;
        memcpy(ret_values + done, staging->part, part * sizeof(float));
    }
    return 0;
}
