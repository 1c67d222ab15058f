/* SPDX-License-Identifier: Apache-2.0
 *
 * Local steps of MultiWorkerMirrored (DiLoCo; Douillard et al., 2023). Between two
 * exchanges each rank takes H steps alone: the batches are those of the global
 * order, and each rank's share of a batch, which its logical shards make, gives the
 * gradient of that rank's own step. At the end of the round the ranks' changes are
 * averaged, weighted by the examples of each, and an outer optimizer (SGD with
 * Nesterov momentum) takes the average as its gradient; the optimizer's slots are
 * averaged likewise. A rank without examples in a batch takes no step. A rank's
 * devices mirror its state within a round (replica_set.h). So between two
 * rounds all replicas hold the same bytes, and everything that is said of a step
 * boundary holds for the end of a round: a round that fails has changed nothing.
 *
 * Rounds end at multiples of H, and at the last step.
 */
#ifndef COXSWAIN_STRATEGY_LOCAL_ROUNDS_H
#define COXSWAIN_STRATEGY_LOCAL_ROUNDS_H

#include "worker/strategy/strategy.h"

/* The outer optimizer's velocity is a slot of the training state, its last. */
#define LOCAL_ROUNDS_SLOT "outer.momentum"

struct crew_communicator;
struct local_rounds;

/* `options` is borrowed; its state has LOCAL_ROUNDS_SLOT. */
int local_rounds_new(const struct strategy_options *options, struct local_rounds **ret_rounds, struct error *error);
/* Adds what local_rounds_new will allocate. */
void local_rounds_memory_plan(const struct strategy_options *options, struct memory_plans *plans);
void local_rounds_free(struct local_rounds *rounds);

/* This rank's logical shards are [first, end). */
int local_rounds_fit(struct local_rounds *rounds, unsigned shards, unsigned first, unsigned end, struct error *error);

/* The crew is formed, and the sums of its rounds go from device to device where `devices` can (crew_communicator.h), else, and with
 * NULL, over the group. After crew_communicator_end and local_rounds_settle, if not for the first time. */
int local_rounds_join(struct local_rounds *rounds, struct crew_communicator *devices, const struct world *world,
                      struct error *error);
/* After a failure and crew_communicator_end: until nothing is read or written any more. */
int local_rounds_settle(struct local_rounds *rounds, struct error *error);

/* One round, whose words (and sums, unless devices have their own way) go over `group`, in which every rank contributes one vector.
 * *abandoned: when it fails, the steps that it had taken. */
int local_rounds_run(struct local_rounds *rounds, struct collective *group, const struct world *world, unsigned votes,
                     struct strategy_result *ret_result, int64_t *abandoned, struct error *error);

/* While a round is under way, from another thread: the state's arrays are those of its start from here on. */
void local_rounds_stand_at_start(struct local_rounds *rounds);

/* The step at which the round that ends at `step` began. */
int64_t local_rounds_begin(const struct local_rounds *rounds, int64_t step);

#endif
