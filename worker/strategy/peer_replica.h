/* SPDX-License-Identifier: Apache-2.0
 *
 * A replica that its peers see while it trains. What comes from them is added up
 * in an inbox, which the trainer takes in between two steps; to the peers the
 * replica is parameters and inbox together. So a step reads parameters that
 * nobody else writes, and no peer ever waits for a step.
 *
 * All calls take the lock for as long as they copy. Parts are [offset, offset +
 * count) of the flat arrays; those that reach beyond are refused (false).
 *
 * Where the state is on a device that does not see the host's memory it changes
 * there, and peers read it by way of a part of the host's (peer_staging.h).
 * state->host is touched where whole replicas are given and taken alone, and by
 * the trainer between two steps, for its other devices.
 */
#ifndef COXSWAIN_STRATEGY_PEER_REPLICA_H
#define COXSWAIN_STRATEGY_PEER_REPLICA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/peer_message.h"

struct peer_replica;

/* The state outlives the replica. */
int peer_replica_new(struct training_state *state, struct peer_replica **ret_replica, struct error *error);
void peer_replica_free(struct peer_replica *replica);
uint64_t peer_replica_elements(const struct peer_replica *replica);
/* Parameters and the optimizer's slots. */
unsigned peer_replica_vectors(const struct peer_replica *replica);

/* The trainer: around everything that writes the state. */
void peer_replica_lock(struct peer_replica *replica);
void peer_replica_unlock(struct peer_replica *replica);
/* With the lock held, around an update: the parameters are kept, and what has become of them is scaled down to our share of the step of a crew of `size` seats. */
int peer_replica_keep(struct peer_replica *replica, struct error *error);
int peer_replica_share_out(struct peer_replica *replica, unsigned size, struct error *error);
/* What the peers shall add then. */
const float *peer_replica_change(const struct peer_replica *replica);
/* With the lock held: the inbox goes into the parameters. Fails with what has gone wrong in what peers have read, too. */
int peer_replica_take_in(struct peer_replica *replica, struct error *error);
/* With the lock held, as many vectors as it has: all of it, once what has come is taken in. */
int peer_replica_copy(struct peer_replica *replica, float *const ret_vectors[], struct error *error);
/* With the lock held, after the former and before another step: these become the state, and what it was lies here. */
int peer_replica_swap(struct peer_replica *replica, float *const vectors[], struct error *error);
/* Until the state is there nothing is given away, and what comes is dropped. Clears the inbox. */
void peer_replica_set_whole(struct peer_replica *replica, bool whole);

/* Without the lock. */
bool peer_replica_is_whole(struct peer_replica *replica);
/* The peers; false, too: dropped, or the device has failed, which the trainer hears of. */
bool peer_replica_add(struct peer_replica *replica, uint64_t offset, uint64_t count, const float *change);
/* Moves half the way towards `theirs`; ret_ours: where it was. */
bool peer_replica_meet(struct peer_replica *replica, uint64_t offset, uint64_t count, const float *theirs,
                       float *ret_ours);
/* The answer to what was sent: half of the difference, whatever has happened here since. */
bool peer_replica_settle(struct peer_replica *replica, uint64_t offset, uint64_t count, const float *sent,
                         const float *theirs);
/* With the lock held. */
bool peer_replica_read(struct peer_replica *replica, unsigned vector, uint64_t offset, uint64_t count,
                       float *ret_values);

#endif
