/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies the data of a PeerToPeer replica (peer_replica.h) between device and host, if the host
 * cannot read the device's memory.
 *
 * Three things are copied. After each step, the change that the step made to the parameters goes
 * to the host, from where it is sent to the peers. The inbox, which is the sum of the changes
 * received from peers, goes to the device and is added to the parameters, if it is not empty. The
 * parameters themselves go to the host only when a peer asks for them, in pieces.
 *
 * The caller must hold the replica's lock for every call, because the trainer's thread and the
 * hub's thread (which answers the peers) use the same stream.
 */
#ifndef COXSWAIN_STRATEGY_PEER_STAGING_H
#define COXSWAIN_STRATEGY_PEER_STAGING_H

#include <stdint.h>

#include "worker/model/graph.h"
#include "worker/optimizer/training_state.h"

struct peer_staging;

/* Allocates buffers and a stream, and pins `inbox` and `change`, which have as many elements as the
 * parameters. Both arrays and `state` must outlive it. */
int peer_staging_new(struct training_state *state, float *inbox, float *change, struct peer_staging **ret_staging,
                     struct error *error);
void peer_staging_free(struct peer_staging *staging);
/* Adds to `plans` what peer_staging_new will allocate for parameters of `elements` elements. */
void peer_staging_plan(const struct device *device, int64_t elements, struct memory_plans *plans);

/* Each of these functions waits for the device. After a failure, all later calls fail as well. */
int peer_staging_wait(struct peer_staging *staging, struct error *error);
/* Saves the parameters before an update, on the device. */
int peer_staging_keep(struct peer_staging *staging, struct error *error);
/* To be called after the update: scales the update's change of the parameters by `share` (see
 * peer_replica_share_out) and copies the scaled change to the host's array `change`. */
int peer_staging_share_out(struct peer_staging *staging, float share, struct error *error);
/* Adds the inbox to the parameters. */
int peer_staging_take_in(struct peer_staging *staging, struct error *error);
/* Copies from the device, anywhere in the state, to the host. */
int peer_staging_read(struct peer_staging *staging, const float *from, uint64_t count, float *ret_values,
                      struct error *error);

#endif
