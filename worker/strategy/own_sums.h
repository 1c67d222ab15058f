/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums gradients over the devices of one process, and copies the first device's parameters to the
 * other devices, where no other process takes part ("own": the process's own devices).
 *
 * Data goes from device to device by NCCL if a communicator can be formed (crew_communicator.h)
 * and the job allows it; otherwise through the host (device_reduction.h). Order of calls:
 *
 *     own_sums_connect        before the replicas, whose gradients are allocated where they are summed
 *     replica_set_new
 *     own_sums_open
 *     in each step:
 *         replica_set_start_passes
 *         own_sums_reduce
 *         replica_set_apply, if every device updates its own parameters; otherwise
 *         replica_set_update, any other changes of the parameters, and own_sums_spread
 *     own_sums_close
 */
#ifndef COXSWAIN_STRATEGY_OWN_SUMS_H
#define COXSWAIN_STRATEGY_OWN_SUMS_H

#include "worker/optimizer/shard_plan.h"
#include "worker/strategy/replica_set.h"

/* The caller initializes it to zeros. */
struct own_sums {
    struct crew_communicator *devices; /* NULL: everything goes through the host */
    struct device_sums *sums;          /* sums by means of `devices`; NULL: through the host */
};

/* Tries to form a communicator, and sets options->sums.gradients_stay if there is one. options->crew.member
 * must be NULL, or `options` a private copy that the replicas do not use; what they point to must
 * outlive `own`. Fails as crew_communicator_form does. */
int own_sums_connect(struct own_sums *own, struct strategy_options *options, struct error *error);
/* Prepares the sums for a replica set with `shards` shards. With a plan, which must outlive
 * `own`, each device keeps only the sums of the shards that it owns (device_sums.h). */
int own_sums_open(struct own_sums *own, const struct strategy_options *options, unsigned shards,
                  const struct shard_plan *plan, struct error *error);
/* Returns whether sums go from device to device by NCCL, not through the host. */
bool own_sums_by_library(const struct own_sums *own);
/* Releases everything; also valid after own_sums_connect or own_sums_open has failed. Call it
 * before the replicas are freed. */
void own_sums_close(struct own_sums *own);

/* Adds to `plans` the memory that such a replica set and its sums will allocate. */
void own_sums_memory_plan(const struct strategy_options *options, enum replica_variables variables, unsigned shards,
                          const struct shard_plan *plan, struct memory_plans *plans);

/* Waits for the passes under way and sums their gradients to where replica_set_update reads them.
 * Through the host, the devices may still be adding up their slices when it returns
 * (replica_set_synchronise waits for them). */
int own_sums_reduce(struct own_sums *own, struct replica_set *replicas, unsigned votes, struct error *error);

/* Copies the first device's parameters to the other devices, as replica_set_spread does for
 * VARIABLES_CENTRAL. Call it after the parameters have changed and before other devices' passes
 * read them. */
int own_sums_spread(struct own_sums *own, struct replica_set *replicas, struct error *error);

#endif
