/* SPDX-License-Identifier: Apache-2.0
 *
 * A replica whose logical shards are computed side by side, each with
 * activations, gradients and a stream of its own, because a layer's statistics
 * are those of the whole batch.
 */
#ifndef COXSWAIN_STRATEGY_REPLICA_LANES_H
#define COXSWAIN_STRATEGY_REPLICA_LANES_H

#include "worker/strategy/replica_parts.h"

struct replica_lanes;

int replica_lanes_new(struct replica *replica, struct replica_lanes **ret_lanes, struct error *error);
void replica_lanes_free(struct replica_lanes *lanes);
/* All passes, and the sums of each subtree on the replica's stream. */
int replica_lanes_start(struct replica *replica, struct error *error);
/* When they are over: the first lane's failure, which the replica's stream does not learn of. */
int replica_lanes_check(const struct replica_lanes *lanes, struct error *error);

#endif
