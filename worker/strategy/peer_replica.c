/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/peer_replica.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/memory.h"

struct peer_replica {
    pthread_mutex_t lock; /* of all that follows, and of the state's arrays */
    uint64_t elements;
    unsigned vectors;
    float *values[PEER_VECTORS_MAX];
    float *inbox;
    bool inbox_is_empty;
    atomic_bool whole; /* written with the lock held */
};

struct peer_replica *peer_replica_new(struct training_state *state)
{
    struct peer_replica *replica = memory_allocate(1, sizeof(*replica));
    replica->elements = (uint64_t)state->layout.elements;
    replica->values[replica->vectors++] = state->host.parameters;
    for (unsigned i = 0; i < state->optimizer_slots; i++)
        replica->values[replica->vectors++] = state->host.slots[i];
    replica->inbox = memory_allocate(replica->elements, sizeof(*replica->inbox));
    replica->inbox_is_empty = true;
    pthread_mutex_init(&replica->lock, NULL);
    return replica;
}

void peer_replica_free(struct peer_replica *replica)
{
    if (replica == NULL)
        return;
    pthread_mutex_destroy(&replica->lock);
    free(replica->inbox);
    free(replica);
}

uint64_t peer_replica_elements(const struct peer_replica *replica)
{
    return replica->elements;
}

unsigned peer_replica_vectors(const struct peer_replica *replica)
{
    return replica->vectors;
}

void peer_replica_lock(struct peer_replica *replica)
{
    pthread_mutex_lock(&replica->lock);
}

void peer_replica_unlock(struct peer_replica *replica)
{
    pthread_mutex_unlock(&replica->lock);
}

static void empty_inbox(struct peer_replica *replica)
{
    memset(replica->inbox, 0, replica->elements * sizeof(*replica->inbox));
    replica->inbox_is_empty = true;
}

void peer_replica_share_out(struct peer_replica *replica, unsigned size, float *change)
{
    float *parameters = replica->values[0], share = 1.0f / (float)size;
    for (uint64_t i = 0; i < replica->elements; i++) {
        float before = change[i];
        change[i] = (parameters[i] - before) * share;
        parameters[i] = before + change[i];
    }
}

void peer_replica_take_in(struct peer_replica *replica)
{
    if (replica->inbox_is_empty)
        return;
    float *parameters = replica->values[0];
    for (uint64_t i = 0; i < replica->elements; i++)
        parameters[i] += replica->inbox[i];
    empty_inbox(replica);
}

void peer_replica_set_whole(struct peer_replica *replica, bool whole)
{
    peer_replica_lock(replica);
    replica->whole = whole;
    empty_inbox(replica);
    peer_replica_unlock(replica);
}

bool peer_replica_is_whole(struct peer_replica *replica)
{
    return replica->whole;
}

static bool is_within(const struct peer_replica *replica, uint64_t offset, uint64_t count)
{
    return offset <= replica->elements && count <= replica->elements - offset;
}

bool peer_replica_add(struct peer_replica *replica, uint64_t offset, uint64_t count, const float *change)
{
    if (!is_within(replica, offset, count))
        return false;
    peer_replica_lock(replica);
    bool whole = replica->whole;
    for (uint64_t i = 0; whole && i < count; i++)
        replica->inbox[offset + i] += change[i];
    replica->inbox_is_empty &= !whole;
    peer_replica_unlock(replica);
    return whole;
}

bool peer_replica_meet(struct peer_replica *replica, uint64_t offset, uint64_t count, const float *theirs,
                       float *ret_ours)
{
    if (!is_within(replica, offset, count))
        return false;
    peer_replica_lock(replica);
    bool whole = replica->whole;
    for (uint64_t i = 0; whole && i < count; i++) {
        ret_ours[i] = replica->values[0][offset + i] + replica->inbox[offset + i];
        replica->inbox[offset + i] += 0.5f * (theirs[i] - ret_ours[i]);
    }
    replica->inbox_is_empty &= !whole;
    peer_replica_unlock(replica);
    return whole;
}

bool peer_replica_settle(struct peer_replica *replica, uint64_t offset, uint64_t count, const float *sent,
                         const float *theirs)
{
    if (!is_within(replica, offset, count))
        return false;
    peer_replica_lock(replica);
    bool whole = replica->whole;
    for (uint64_t i = 0; whole && i < count; i++)
        replica->inbox[offset + i] += 0.5f * (theirs[i] - sent[offset + i]);
    replica->inbox_is_empty &= !whole;
    peer_replica_unlock(replica);
    return whole;
}

bool peer_replica_read(struct peer_replica *replica, unsigned vector, uint64_t offset, uint64_t count,
                       float *ret_values)
{
    if (vector >= replica->vectors || !is_within(replica, offset, count))
        return false;
    memcpy(ret_values, replica->values[vector] + offset, count * sizeof(*ret_values));
    if (vector == 0 && !replica->inbox_is_empty)
        for (uint64_t i = 0; i < count; i++)
            ret_values[i] += replica->inbox[offset + i];
    return true;
}
