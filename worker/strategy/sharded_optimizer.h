/* SPDX-License-Identifier: Apache-2.0
 *
 * The optimizer's step of a crew that shares the slots out (shard_plan.h; ZeRO-1,
 * Rajbhandari et al. 2020). Gradients are summed where they are needed: in the
 * rank that owns them and in the one that mirrors its shard. Both make the same
 * update, and the owner gives the new parameters to all others.
 *
 * When a step counts. A rank sends the norm of its shard when its sums are whole,
 * and changes something when it has everybody's. So when one has changed, all
 * others can: after a loss those who have not are told the norm and do
 * (sharded_optimizer_agree), and the step is nowhere taken back.
 */
#ifndef COXSWAIN_STRATEGY_SHARDED_OPTIMIZER_H
#define COXSWAIN_STRATEGY_SHARDED_OPTIMIZER_H

#include "worker/strategy/replica_set.h"
#include "worker/strategy/strategy.h"

struct crew_communicator;
struct device_sums;
struct sharded_optimizer;

/* The state of rank `rank` of `size`, which is on these devices. */
int sharded_optimizer_init_state(struct training_state *state, const struct strategy_device *devices, unsigned count,
                                 const struct optimizer_spec *optimizer, int64_t seed, unsigned rank, unsigned size,
                                 struct error *error);
/* Options, whose state is a shard (training_state_init_shard), and replicas are borrowed. */
int sharded_optimizer_new(const struct strategy_options *options, struct replica_set *replicas,
                          struct sharded_optimizer **ret_optimizer, struct error *error);
void sharded_optimizer_free(struct sharded_optimizer *optimizer);

/* The sums go from device to device (with the state's plan), and so do new parameters. Borrowed. */
void sharded_optimizer_use(struct sharded_optimizer *optimizer, struct device_sums *sums,
                           struct crew_communicator *devices);
/* Whoever sums in another way than the next one says so before: what was summed is overwritten. */
void sharded_optimizer_begin(struct sharded_optimizer *optimizer);
/* Sums the elements from `offset` on where they are owned. */
collective_ticket sharded_optimizer_reduce(struct sharded_optimizer *optimizer, struct collective *group,
                                           const float *const *contributions, float *result, int64_t offset,
                                           int64_t elements);
/* Once all sums of the batch are there, and the control words. A lone rank needs no group. After a failure the state's step says whether it counts. */
int sharded_optimizer_apply(struct sharded_optimizer *optimizer, struct collective *group, const struct world *world,
                            double learning_rate, const float *controls, struct strategy_result *ret_result,
                            struct error *error);

/* Brings all ranks of a world that has a state to its step. *ret_lost: neither the owner of some shard nor its mirror is left;
 * nothing has changed then. *holds_state is false while it must not be relied on. */
int sharded_optimizer_agree(struct sharded_optimizer *optimizer, struct collective *group, const struct world *world,
                            bool *holds_state, bool *ret_lost, struct error *error);
/* Whether all parameters here are of one step. */
bool sharded_optimizer_is_whole(const struct sharded_optimizer *optimizer);
/* The state comes from elsewhere: no step is under way. */
void sharded_optimizer_forget(struct sharded_optimizer *optimizer);

#endif
