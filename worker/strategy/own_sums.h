/* SPDX-License-Identifier: Apache-2.0
 *
 * The sums of one process's devices to which no other process adds anything: from
 * device to device where these know each other (crew_communicator.h) and the job
 * lets them, else through the host (device_reduction.h). Likewise what one of them
 * gives to the others.
 *
 *     own_sums_connect        before the replicas, whose gradients lie where they are summed
 *     replica_set_new
 *     own_sums_open
 *     replica_set_start_passes, own_sums_reduce                  each step
 *     replica_set_apply, or replica_set_update … own_sums_spread
 *     own_sums_close
 */
#ifndef COXSWAIN_STRATEGY_OWN_SUMS_H
#define COXSWAIN_STRATEGY_OWN_SUMS_H

#include "worker/optimizer/shard_plan.h"
#include "worker/strategy/replica_set.h"

/* Begins as zeros. */
struct own_sums {
    struct crew_communicator *devices; /* NULL: all goes through the host */
    struct device_sums *sums;          /* by way of `devices`; NULL, too */
};

/* Says in options->gradients_stay where gradients go. Options have no member, or are not the replicas'; what they point to is
 * borrowed. */
int own_sums_connect(struct own_sums *own, struct strategy_options *options, struct error *error);
/* Of a set with so many shards. With a plan, which is borrowed, too, sums stay with the owners of shards (device_sums.h). */
int own_sums_open(struct own_sums *own, const struct strategy_options *options, unsigned shards,
                  const struct shard_plan *plan, struct error *error);
/* Whether they go from device to device, by NCCL; not through the host. */
bool own_sums_by_library(const struct own_sums *own);
/* However far it was opened, before the replicas go. */
void own_sums_close(struct own_sums *own);

/* Adds what such a set and its sums will allocate. */
void own_sums_memory_plan(const struct strategy_options *options, enum replica_variables variables, unsigned shards,
                          const struct shard_plan *plan, struct memory_plans *plans);

/* Waits for the passes that are under way. The sum is where replica_set_update takes it from; through the host the devices may be
 * about to add it up, each its slice (replica_set_synchronise). */
int own_sums_reduce(struct own_sums *own, struct replica_set *replicas, unsigned votes, struct error *error);

/* As replica_set_spread, of VARIABLES_CENTRAL: behind what has changed the first device's parameters, before passes read the others'. */
int own_sums_spread(struct own_sums *own, struct replica_set *replicas, struct error *error);

#endif
