/* SPDX-License-Identifier: Apache-2.0
 *
 * The arrays of a PeerToPeer replica whose device does not see the host's memory:
 * what its own updates have changed comes to the host, what its peers have sent
 * goes to the device, and what they read is copied part by part when they do.
 * So a step moves no more than the change that it sends and the inbox, where
 * something lies in that.
 *
 * It has a stream of its own, which its caller guards by the replica's lock: the
 * trainer and the hub's thread use it in turn.
 */
#ifndef COXSWAIN_STRATEGY_PEER_STAGING_H
#define COXSWAIN_STRATEGY_PEER_STAGING_H

#include <stdint.h>

#include "worker/model/graph.h"
#include "worker/optimizer/training_state.h"

struct peer_staging;

/* Pins the host's arrays, as long as the parameters, which outlive it, as the state does. */
int peer_staging_new(struct training_state *state, float *inbox, float *change, struct peer_staging **ret_staging,
                     struct error *error);
void peer_staging_free(struct peer_staging *staging);
/* Adds what that will allocate, for parameters of so many elements. */
void peer_staging_plan(const struct device *device, int64_t elements, struct memory_plans *plans);

/* Each returns when the device is through with it; the first failure comes back from all that follow. */
int peer_staging_wait(struct peer_staging *staging, struct error *error);
/* Keeps the parameters as they are before an update. */
int peer_staging_keep(struct peer_staging *staging, struct error *error);
/* After it: as peer_replica_share_out, the change into the host's array. */
int peer_staging_share_out(struct peer_staging *staging, float share, struct error *error);
/* Adds the inbox to the parameters. */
int peer_staging_take_in(struct peer_staging *staging, struct error *error);
/* From the device's array, anywhere in the state, to the host. */
int peer_staging_read(struct peer_staging *staging, const float *from, uint64_t count, float *ret_values,
                      struct error *error);

#endif
