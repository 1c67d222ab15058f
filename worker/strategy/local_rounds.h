/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs MultiWorkerMirrored with local steps (DiLoCo; Douillard et al., 2023): each rank takes H
 * steps alone, then the ranks average what they have changed. Such a group of steps is a round.
 *
 * The batches are those of the global order. A rank's own step uses the gradient of its logical
 * shards' share of the batch; a rank without examples in a batch takes no step. At the end of a
 * round, the ranks' changes are averaged, weighted by the examples of each rank, and an outer
 * optimizer (SGD with Nesterov momentum) uses the average as its gradient. The optimizer's slots
 * are averaged in the same way. Within a round, a rank's devices mirror its state (replica_set.h).
 *
 * So between two rounds all replicas hold the same bytes, and checkpoints are saved and members join only
 * there. A round that fails leaves the state as it was at its start, unless a device has failed.
 * Rounds end at multiples of H, and at the last step.
 */
#ifndef COXSWAIN_STRATEGY_LOCAL_ROUNDS_H
#define COXSWAIN_STRATEGY_LOCAL_ROUNDS_H

#include "worker/strategy/strategy.h"

/* The name of the last slot of the training state: the outer optimizer's velocity. */
#define LOCAL_ROUNDS_SLOT "outer.momentum"

struct crew_communicator;
struct local_rounds;

/* Creates the rounds. `options` must outlive them; its state must have LOCAL_ROUNDS_SLOT. */
int local_rounds_new(const struct strategy_options *options, struct local_rounds **ret_rounds, struct error *error);
/* Adds to `plans` what local_rounds_new will allocate. */
void local_rounds_memory_plan(const struct strategy_options *options, struct memory_plans *plans);
void local_rounds_free(struct local_rounds *rounds);

/* Builds this rank's replicas for the logical shards [first, end). */
int local_rounds_fit(struct local_rounds *rounds, unsigned shards, unsigned first, unsigned end, struct error *error);

/* Joins a newly formed crew. The sums of its rounds go from device to device if `devices` has a communicator (crew_communicator.h),
 * otherwise, and with NULL, through the group. Before joining again, call crew_communicator_end and local_rounds_settle. */
int local_rounds_join(struct local_rounds *rounds, struct crew_communicator *devices, const struct world *world,
                      struct error *error);
/* After a failure and crew_communicator_end: waits until no memory is read or written any more. */
int local_rounds_settle(struct local_rounds *rounds, struct error *error);

/* Runs one round. Each rank sends its votes (stop, save, re-form) and times through `group`, and its changes, too, unless those go from
 * device to device; every rank contributes one vector. If the round fails, *abandoned is the number of steps that it had taken. */
int local_rounds_run(struct local_rounds *rounds, struct collective *group, const struct world *world, unsigned votes,
                     struct strategy_result *ret_result, int64_t *abandoned, struct error *error);

/* Restores the state at the start of the round, by pointing the state's arrays at it. Called from
 * another thread, during a round that is then abandoned. */
void local_rounds_rewind(struct local_rounds *rounds);

/* Returns the step at which the round that ends at `step` began. */
int64_t local_rounds_begin(const struct local_rounds *rounds, int64_t step);

#endif
