/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the logical shards (fixed parts of a batch) of a replica side by side, each on a stream with its own
 * activations and gradients ("lane"). replica.c uses it for models that have layers with statistics of the whole batch,
 * because their shards exchange values during the pass and must all be under way at once.
 */
#ifndef COXSWAIN_STRATEGY_REPLICA_LANES_H
#define COXSWAIN_STRATEGY_REPLICA_LANES_H

#include "worker/strategy/replica_parts.h"

struct replica_lanes;

int replica_lanes_new(struct replica *replica, struct replica_lanes **ret_lanes, struct error *error);
void replica_lanes_free(struct replica_lanes *lanes);
/* Starts all passes, and sums the gradients of each subtree on the replica's stream. */
int replica_lanes_start(struct replica *replica, struct error *error);
/* Returns the failure of the first lane that failed, after the passes have ended. The replica's
 * own stream does not report it. */
int replica_lanes_check(const struct replica_lanes *lanes, struct error *error);

#endif
