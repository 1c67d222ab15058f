/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/peer_replica.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/memory.h"
#include "worker/strategy/peer_staging.h"

struct peer_replica {
    pthread_mutex_t lock; /* guards everything below, and the state's arrays */
    struct training_state *state;
    uint64_t elements;
    unsigned vectors;
    float *values[PEER_VECTORS_MAX]; /* where the state is */
    struct peer_staging *staging;    /* NULL: the host sees them there */
    float *inbox, *change;           /* the latter has what was before an update, too, on the host */
    bool inbox_is_empty;
    atomic_bool whole; /* written with the lock held */
};

int peer_replica_new(struct training_state *state, struct peer_replica **ret_replica, struct error *error)
{
    struct peer_replica *replica = memory_allocate(1, sizeof(*replica));
    replica->state = state;
    replica->elements = (uint64_t)state->layout.elements;
    replica->values[replica->vectors++] = state->parameters;
    for (unsigned i = 0; i < state->optimizer_slots; i++)
        replica->values[replica->vectors++] = state->slots[i];
    replica->inbox = memory_allocate(replica->elements, sizeof(*replica->inbox));
    replica->change = memory_allocate(replica->elements, sizeof(*replica->change));
    replica->inbox_is_empty = true;
    pthread_mutex_init(&replica->lock, NULL);
    if (state->host.stream != NULL &&
        peer_staging_new(state, replica->inbox, replica->change, &replica->staging, error) < 0) {
        peer_replica_free(replica);
        return -1;
    }
    *ret_replica = replica;
    return 0;
}

void peer_replica_free(struct peer_replica *replica)
{
    if (replica == NULL)
        return;
    pthread_mutex_destroy(&replica->lock);
    peer_staging_free(replica->staging);
    free(replica->inbox);
    free(replica->change);
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

int peer_replica_keep(struct peer_replica *replica, struct error *error)
{
    if (replica->staging != NULL)
        return peer_staging_keep(replica->staging, error);
    memcpy(replica->change, replica->values[0], replica->elements * sizeof(*replica->change));
    return 0;
}

int peer_replica_share_out(struct peer_replica *replica, unsigned size, struct error *error)
{
    float *parameters = replica->values[0], *change = replica->change, share = 1.0f / (float)size;
    if (replica->staging != NULL)
        return peer_staging_share_out(replica->staging, share, error);
    for (uint64_t i = 0; i < replica->elements; i++) {
        float before = change[i];
        change[i] = (parameters[i] - before) * share;
        parameters[i] = before + change[i];
    }
    return 0;
}

const float *peer_replica_change(const struct peer_replica *replica)
{
    return replica->change;
}

static int add_inbox(struct peer_replica *replica, struct error *error)
{
    float *parameters = replica->values[0];
    if (replica->staging != NULL)
        return peer_staging_take_in(replica->staging, error);
    for (uint64_t i = 0; i < replica->elements; i++)
        parameters[i] += replica->inbox[i];
    return 0;
}

int peer_replica_take_in(struct peer_replica *replica, struct error *error)
{
    if (replica->inbox_is_empty)
        return replica->staging != NULL ? peer_staging_wait(replica->staging, error) : 0;
    if (add_inbox(replica, error) < 0)
        return -1;
    empty_inbox(replica);
    return 0;
}

/* Where the host sees it. */
static float *host_vector(const struct peer_replica *replica, unsigned vector)
{
    return vector == 0 ? replica->state->host.parameters : replica->state->host.slots[vector - 1];
}

int peer_replica_copy(struct peer_replica *replica, float *const ret_vectors[], struct error *error)
{
    if (peer_replica_take_in(replica, error) < 0 || training_state_to_host(replica->state, error) < 0)
        return -1;
    for (unsigned v = 0; v < replica->vectors; v++)
        memcpy(ret_vectors[v], host_vector(replica, v), replica->elements * sizeof(float));
    return 0;
}

int peer_replica_swap(struct peer_replica *replica, float *const vectors[], struct error *error)
{
    for (unsigned v = 0; v < replica->vectors; v++) {
        float *own = host_vector(replica, v);
        for (uint64_t i = 0; i < replica->elements; i++) {
            float value = own[i];
            own[i] = vectors[v][i];
            vectors[v][i] = value;
        }
    }
    return training_state_to_device(replica->state, error);
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

/* Reads the state itself, without the inbox. */
static bool read_values(struct peer_replica *replica, unsigned vector, uint64_t offset, uint64_t count,
                        float *ret_values)
{
    const float *from = replica->values[vector] + offset;
    if (replica->staging != NULL)
        return peer_staging_read(replica->staging, from, count, ret_values, NULL) == 0;
    memcpy(ret_values, from, count * sizeof(*ret_values));
    return true;
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
    bool meets = replica->whole && read_values(replica, 0, offset, count, ret_ours);
    for (uint64_t i = 0; meets && i < count; i++) {
        ret_ours[i] += replica->inbox[offset + i];
        replica->inbox[offset + i] += 0.5f * (theirs[i] - ret_ours[i]);
    }
    replica->inbox_is_empty &= !meets;
    peer_replica_unlock(replica);
    return meets;
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
    if (vector >= replica->vectors || !is_within(replica, offset, count) ||
        !read_values(replica, vector, offset, count, ret_values))
        return false;
    if (vector == 0 && !replica->inbox_is_empty)
        for (uint64_t i = 0; i < count; i++)
            ret_values[i] += replica->inbox[offset + i];
    return true;
}
