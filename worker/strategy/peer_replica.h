/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds one worker's copy of the model's training state in a PeerToPeer crew, which peers read and change while the
 * worker trains. The trainer (peer_to_peer.c) and the thread that serves peers (peer_hub.h) share it.
 *
 * Changes from peers are added up in an inbox, which the trainer adds to the parameters between two steps. Peers see
 * the sum of parameters and inbox. So nobody but the trainer writes the parameters that a step reads, and no peer waits
 * for a step.
 *
 * Unless a comment says otherwise, functions for peers take the lock while they copy. A part is
 * [offset, offset + count) of the flat arrays; a part outside them is refused (false).
 *
 * If the state is on a device whose memory the host cannot read, it is changed on that device, and
 * peers read it through a host buffer (peer_staging.h). state->host is used only when a whole
 * replica is copied or swapped, and by the trainer between two steps, for its other devices.
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

/* Creates a replica of `state`, which must outlive it. It counts as not whole. */
int peer_replica_new(struct training_state *state, struct peer_replica **ret_replica, struct error *error);
void peer_replica_free(struct peer_replica *replica);
uint64_t peer_replica_elements(const struct peer_replica *replica);
/* Returns the number of vectors: the parameters and the optimizer's slots. */
unsigned peer_replica_vectors(const struct peer_replica *replica);

/* Locks the replica; the trainer holds the lock around everything that writes the state. */
void peer_replica_lock(struct peer_replica *replica);
void peer_replica_unlock(struct peer_replica *replica);
/* With the lock held. keep saves the parameters before an update; share_out afterwards scales
 * the update's change down to 1/`size`, this seat's share in a crew of `size` seats. */
int peer_replica_keep(struct peer_replica *replica, struct error *error);
int peer_replica_share_out(struct peer_replica *replica, unsigned size, struct error *error);
/* Returns the change that share_out has made, for the peers to add. */
const float *peer_replica_change(const struct peer_replica *replica);
/* With the lock held: adds the inbox to the parameters and empties it. Also fails if an earlier
 * read for a peer has failed on the device. */
int peer_replica_take_in(struct peer_replica *replica, struct error *error);
/* With the lock held: takes in the inbox, then copies all vectors of the state to `ret_vectors`. */
int peer_replica_copy(struct peer_replica *replica, float *const ret_vectors[], struct error *error);
/* With the lock held, after peer_replica_copy and before another step: exchanges the contents of
 * the state and `vectors`. */
int peer_replica_swap(struct peer_replica *replica, float *const vectors[], struct error *error);
/* Sets whether the state is complete, and clears the inbox. While it is not, changes and
 * meetings from peers are refused. */
void peer_replica_set_whole(struct peer_replica *replica, bool whole);

/* Returns whether the state is complete. Does not take the lock. */
bool peer_replica_is_whole(struct peer_replica *replica);
/* Adds a peer's change to the inbox. False: the change was dropped. */
bool peer_replica_add(struct peer_replica *replica, uint64_t offset, uint64_t count, const float *change);
/* Moves this replica half-way towards `theirs`; ret_ours receives its values before that. False:
 * refused, or the device has failed, which the trainer learns from peer_replica_take_in. */
bool peer_replica_meet(struct peer_replica *replica, uint64_t offset, uint64_t count, const float *theirs,
                       float *ret_ours);
/* Completes a meeting that this replica began by sending `sent` (the whole vector): adds half of the difference between `theirs` and
 * `sent`, even if this replica has changed since. */
bool peer_replica_settle(struct peer_replica *replica, uint64_t offset, uint64_t count, const float *sent,
                         const float *theirs);
/* With the lock held: copies a part of a vector, for vector 0 (the parameters) including the
 * inbox. */
bool peer_replica_read(struct peer_replica *replica, unsigned vector, uint64_t offset, uint64_t count,
                       float *ret_values);

#endif
