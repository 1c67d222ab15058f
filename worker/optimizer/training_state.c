/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/optimizer/training_state.h"

#include <string.h>

#include "common/crc32c.h"
#include "worker/model/graph.h"
#include "worker/optimizer/slot_pieces.h"

static size_t flat_bytes(const struct training_state *state)
{
    return (size_t)state->layout.elements * sizeof(float);
}

int64_t training_state_slot_elements(const struct training_state *state)
{
    return state->shards.size > 0 ? shard_kept_elements(&state->shards, state->shard_rank) : state->layout.elements;
}

static size_t slot_bytes(const struct training_state *state)
{
    return (size_t)training_state_slot_elements(state) * sizeof(float);
}

static int allocate_memory(struct training_state *state, enum device_memory kind, size_t bytes, float **ret_flat,
                           struct error *error)
{
    void *memory = NULL;
    if (device_allocate(state->device, kind, bytes, &memory, error) < 0)
        return -1;
    *ret_flat = memory;
    return 0;
}

/* Allocates one flat array and the host's view of it. If it is in pieces or parts, only the
 * host's array is allocated here. */
static int allocate_flat(struct training_state *state, bool in_pieces, size_t bytes, float **ret_flat, float **ret_host,
                         struct error *error)
{
    if (in_pieces || state->parts != NULL)
        return allocate_memory(state, MEMORY_SHARED, bytes, ret_host, error);
    if (allocate_memory(state, MEMORY_DEVICE, bytes, ret_flat, error) < 0)
        return -1;
    if (state->host.stream)
        return allocate_memory(state, MEMORY_SHARED, bytes, ret_host, error);
    *ret_host = *ret_flat;
    return 0;
}

int training_state_add_slot(struct training_state *state, const char *name, struct error *error)
{
    unsigned i = state->slot_count++;
    state->slot_names[i] = name;
    if (allocate_flat(state, state->pieces != NULL, slot_bytes(state), &state->slots[i], &state->host.slots[i], error) <
        0)
        return error_wrap(error, "slot %s", name);
    return 0;
}

static int allocate(struct training_state *state, const struct optimizer_spec *optimizer, struct error *error)
{
    bool far = state->parts == NULL && !device_memory_is_shared(state->device);
    if (far && device_stream_new(state->device, &state->host.stream, error) < 0)
        return -1;
    if (allocate_flat(state, false, flat_bytes(state), &state->parameters, &state->host.parameters, error) < 0)
        return error_wrap(error, "parameters");
    unsigned slots = optimizer_slot_count(optimizer);
    for (unsigned i = 0; i < slots; i++)
        if (training_state_add_slot(state, optimizer_slot_name(optimizer, i), error) < 0)
            return -1;
    state->optimizer_slots = slots;
    return 0;
}

static void copy_flat(struct training_state *state, size_t bytes, const float *from, float *to)
{
    device_copy(state->host.stream, &(struct copy){(int64_t)bytes, from, to});
}

/* Writes the parameters to the device, and the slots if `slots` is set; if the state is in
 * parts, always both. */
static int to_device(struct training_state *state, bool slots, struct error *error)
{
    state->writings++;
    if (state->parts != NULL)
        return state_parts_to_devices(state->parts, state->host.parameters, state->host.slots, error);
    if (!state->host.stream)
        return 0;
    copy_flat(state, flat_bytes(state), state->host.parameters, state->parameters);
    for (unsigned i = 0; slots && state->pieces == NULL && i < state->slot_count; i++)
        copy_flat(state, slot_bytes(state), state->host.slots[i], state->slots[i]);
    if (device_stream_synchronise(state->host.stream, error) < 0)
        return -1;
    return slots && state->pieces != NULL ? slot_pieces_to_devices(state->pieces, state->host.slots, error) : 0;
}

static int fill(struct training_state *state, const struct optimizer_spec *optimizer, struct error *error)
{
    if (allocate(state, optimizer, error) < 0)
        return -1;
    graph_initialise(&state->layout, (uint64_t)state->progress.seed, state->host.parameters);
    return to_device(state, false, error); /* slots start as zeros, and so does allocated memory */
}

static int start(struct training_state *state, const struct optimizer_spec *optimizer, struct error *error)
{
    if (fill(state, optimizer, error) == 0)
        return 0;
    training_state_release(state);
    return -1;
}

int training_state_init(struct training_state *state, struct device *device, const struct parameter_layout *layout,
                        const struct optimizer_spec *optimizer, int64_t seed, struct error *error)
{
    *state = (struct training_state){.device = device, .layout = *layout, .progress.seed = seed};
    return start(state, optimizer, error);
}

/* If all devices share the host's memory, a single device holds all slots. */
int training_state_init_shard(struct training_state *state, const struct training_shard *shard,
                              const struct parameter_layout *layout, const struct optimizer_spec *optimizer,
                              int64_t seed, struct error *error)
{
    struct device *device = shard->devices[0];
    bool far = !device_memory_is_shared(device);
    *state =
        (struct training_state){.device = device, .layout = *layout, .shard_rank = shard->rank, .progress.seed = seed};
    shard_plan_init(&state->shards, layout, shard->size, far ? shard->device_count : 1, far);
    if (state->shards.devices > 1 && slot_pieces_new(shard->devices, &state->shards, shard->rank,
                                                     optimizer_slot_count(optimizer), &state->pieces, error) < 0)
        return -1;
    return start(state, optimizer, error);
}

int training_state_init_parts(struct training_state *state, const struct state_part *parts, unsigned count,
                              const struct parameter_layout *layout, const struct optimizer_spec *optimizer,
                              int64_t seed, struct error *error)
{
    *state = (struct training_state){.device = parts[0].device, .layout = *layout, .progress.seed = seed};
    if (state_parts_new(parts, count, layout, optimizer_slot_count(optimizer), &state->parts, error) < 0)
        return -1;
    return start(state, optimizer, error);
}

struct state_part training_state_part(const struct training_state *state, unsigned part)
{
    if (state->parts != NULL)
        return *state_parts_at(state->parts, part);
    struct state_part whole = {.device = state->device, .layout = &state->layout, .parameters = state->parameters};
    for (unsigned i = 0; i < state->optimizer_slots; i++)
        whole.slots[i] = state->slots[i];
    return whole;
}

static void release_flat(struct training_state *state, float *flat, float *host)
{
    device_free(state->device, flat);
    if (host != flat)
        device_free(state->device, host);
}

void training_state_release(struct training_state *state)
{
    if (!state->device)
        return;
    device_stream_free(state->host.stream);
    release_flat(state, state->parameters, state->host.parameters);
    for (unsigned i = 0; i < state->slot_count; i++)
        release_flat(state, state->slots[i], state->host.slots[i]);
    slot_pieces_free(state->pieces);
    state_parts_free(state->parts);
    *state = (struct training_state){0};
}

int training_state_parameters_to_host(struct training_state *state, struct error *error)
{
    if (state->parts != NULL)
        return state_parts_to_host(state->parts, state->host.parameters, NULL, error);
    if (!state->host.stream)
        return 0;
    copy_flat(state, flat_bytes(state), state->parameters, state->host.parameters);
    return device_stream_synchronise(state->host.stream, error);
}

int training_state_parameters_to_device(struct training_state *state, struct error *error)
{
    if (state->parts != NULL)
        return state_parts_to_devices(state->parts, state->host.parameters, NULL, error);
    if (!state->host.stream)
        return 0;
    copy_flat(state, flat_bytes(state), state->host.parameters, state->parameters);
    return device_stream_synchronise(state->host.stream, error);
}

int training_state_to_host(struct training_state *state, struct error *error)
{
    if (state->parts != NULL)
        return state_parts_to_host(state->parts, state->host.parameters, state->host.slots, error);
    if (!state->host.stream)
        return 0;
    copy_flat(state, flat_bytes(state), state->parameters, state->host.parameters);
    for (unsigned i = 0; state->pieces == NULL && i < state->slot_count; i++)
        copy_flat(state, slot_bytes(state), state->slots[i], state->host.slots[i]);
    if (device_stream_synchronise(state->host.stream, error) < 0)
        return -1;
    return state->pieces != NULL ? slot_pieces_to_host(state->pieces, state->host.slots, error) : 0;
}

int training_state_to_device(struct training_state *state, struct error *error)
{
    return to_device(state, true, error);
}

unsigned training_state_spans(struct training_state *state, struct state_span ret_spans[TRAINING_STATE_SPANS_MAX])
{
    unsigned count = 0;
    ret_spans[count++] = (struct state_span){"progress", &state->progress, sizeof state->progress};
    ret_spans[count++] = (struct state_span){"parameters", state->host.parameters, flat_bytes(state)};
    for (unsigned i = 0; i < state->slot_count; i++)
        ret_spans[count++] = (struct state_span){state->slot_names[i], state->host.slots[i], slot_bytes(state)};
    return count;
}

uint32_t training_state_digest(struct training_state *state)
{
    struct state_span spans[TRAINING_STATE_SPANS_MAX];
    unsigned count = training_state_spans(state, spans);
    uint32_t digest = 0;
    for (unsigned i = 0; i < count; i++)
        digest = crc32c(digest, spans[i].bytes, spans[i].length);
    return digest;
}
