/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes the optimizer's step in a crew that shards the optimizer's slots (its values per parameter, such as momentum)
 * over the ranks (shard_plan.h; ZeRO-1, Rajbhandari et al. 2020). Mirrored and MultiWorkerMirrored use it when the job
 * asks for a sharded optimizer.
 *
 * Gradients are summed only where they are needed: in the rank that owns a shard, and in the rank
 * that mirrors it. Both make the same update; the owner sends the new parameters to all others.
 *
 * A rank sends the norm of its shard once its sums are complete, and changes its state only after
 * it has received the norms of all ranks. So if one rank has made the update, all others can: after
 * a loss, the ranks that have not made it receive the norm and make it (sharded_optimizer_agree).
 * No step is ever taken back.
 */
#ifndef COXSWAIN_STRATEGY_SHARDED_OPTIMIZER_H
#define COXSWAIN_STRATEGY_SHARDED_OPTIMIZER_H

#include "worker/strategy/replica_set.h"
#include "worker/strategy/strategy.h"

struct crew_communicator;
struct device_sums;
struct sharded_optimizer;

/* Initialises the state of rank `rank` of `size` on these devices. */
int sharded_optimizer_init_state(struct training_state *state, const struct strategy_device *devices, unsigned count,
                                 const struct optimizer_spec *optimizer, int64_t seed, unsigned rank, unsigned size,
                                 struct error *error);
/* Creates the optimizer. `options`, whose state is a shard (training_state_init_shard), and
 * `replicas` must outlive it. */
int sharded_optimizer_new(const struct strategy_options *options, struct replica_set *replicas,
                          struct sharded_optimizer **ret_optimizer, struct error *error);
void sharded_optimizer_free(struct sharded_optimizer *optimizer);

/* Makes sums and new parameters go from device to device, with the state's plan. Both arguments
 * are borrowed. */
void sharded_optimizer_use(struct sharded_optimizer *optimizer, struct device_sums *sums,
                           struct crew_communicator *devices);
/* Marks the sums as incomplete. Call it before summing other than by sharded_optimizer_reduce,
 * because the sums are overwritten. */
void sharded_optimizer_begin(struct sharded_optimizer *optimizer);
/* Starts to sum the elements from `offset` on, each in the ranks that need the sum. */
collective_ticket sharded_optimizer_reduce(struct sharded_optimizer *optimizer, struct collective *group,
                                           const float *const *contributions, float *result, int64_t offset,
                                           int64_t elements);
/* Takes the step, once all sums of the batch and the control words are complete. `group` may be
 * NULL for a single rank. After a failure, the state's step shows whether the step counts. */
int sharded_optimizer_apply(struct sharded_optimizer *optimizer, struct collective *group, const struct world *world,
                            double learning_rate, const float *controls, struct strategy_result *ret_result,
                            struct error *error);

/* Brings all ranks to the world's step, in a world that has a state. Sets *ret_lost if neither
 * the owner nor the mirror of some shard is left; nothing has changed then. *holds_state is
 * false while the state must not be used. */
int sharded_optimizer_agree(struct sharded_optimizer *optimizer, struct collective *group, const struct world *world,
                            bool *holds_state, bool *ret_lost, struct error *error);
/* Returns whether all parameters here belong to one step. */
bool sharded_optimizer_is_whole(const struct sharded_optimizer *optimizer);
/* Forgets any step under way, because the state was replaced. */
void sharded_optimizer_forget(struct sharded_optimizer *optimizer);

#endif
