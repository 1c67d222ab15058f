/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the replicas of one process (copies of the model, one on each device) act as a single replica. The strategies
 * with several devices per process use it.
 *
 * The process's logical shards are divided among its devices in order. Its contributions are the sums over its own
 * subtrees of the reduction tree (reduction_tree.h), whichever devices computed their parts. Order of calls:
 *
 *     replica_set_new, replica_set_spread        once the first device has the state
 *     replica_set_start_passes                   each step
 *     replica_set_wait_bucket …, _finish_passes  if the contributions go to other processes
 *     or _finish_passes, replica_set_reduce      if no other process takes part in this step
 *     replica_set_apply
 */
#ifndef COXSWAIN_STRATEGY_REPLICA_SET_H
#define COXSWAIN_STRATEGY_REPLICA_SET_H

#include "worker/strategy/replica.h"

struct replica_set;

/* VARIABLES_MIRRORED: every device has the whole state and makes the same update.
 * VARIABLES_CENTRAL: there is one state, which all devices read, and one update, of which each device computes a slice. If the devices
 * do not share memory, the first makes the update, and the others have copies of its parameters. */
enum replica_variables { VARIABLES_MIRRORED, VARIABLES_CENTRAL };

/* Creates a set for the shards [first, end) of `shards`; each device must get at least one. `options` are copied; what they point to must
 * outlive the set. */
int replica_set_new(const struct strategy_options *options, enum replica_variables variables, unsigned shards,
                    unsigned first, unsigned end, struct replica_set **ret_set, struct error *error);
/* Adds what replica_set_new will allocate. */
void replica_set_memory_plan(const struct strategy_options *options, enum replica_variables variables,
                             enum device_memory gradients, unsigned shards, unsigned first, unsigned end,
                             struct memory_plans *plans);
/* Returns the memory for the gradients of a set that sums them itself: shared memory if there are several
 * devices. */
enum device_memory replica_set_gradients_place(const struct strategy_options *options);
void replica_set_free(struct replica_set *set);

/* Returns whether the passes exchange values with other processes, because a layer has statistics of the whole batch. */
bool replica_set_uses_group(const struct replica_set *set);
/* Sets the group through which they do so, and this process's rank among the group's `size` processes. The passes use the group until
 * replica_set_settle, even if it has been aborted. */
void replica_set_join(struct replica_set *set, struct collective *group, unsigned rank, unsigned size);
/* Copies options->state to the other devices' mirrors, or its parameters and progress to their copies. */
int replica_set_spread(struct replica_set *set, struct error *error);

/* Copies the host's copy of the parameters, and the progress, to the other devices' copies, if there are
 * any (VARIABLES_CENTRAL). */
int replica_set_give_parameters(struct replica_set *set, struct error *error);
/* Copies the state's step and position to the copies. For callers that copy the parameters themselves; replica_set_spread and
 * replica_set_give_parameters do it, too. */
void replica_set_tell_progress(struct replica_set *set);
/* Returns the parameters with which a device computes. */
float *replica_set_parameters(const struct replica_set *set, unsigned device);

/* Return the set's contributions to the sum over the batch: their number, their flat gradients in the order of the layout, and their control
 * words (replica.h). */
unsigned replica_set_contributions(const struct replica_set *set);
const float *const *replica_set_gradients(const struct replica_set *set);
const float *const *replica_set_controls(const struct replica_set *set);
/* Do for all replicas of the set what replica_start_passes, replica_finish_passes and replica_settle do for one. */
int replica_set_start_passes(struct replica_set *set, int64_t *ret_examples, struct error *error);
int replica_set_finish_passes(struct replica_set *set, unsigned rank, unsigned votes, struct error *error);
void replica_set_settle(struct replica_set *set);

/* Waits until bucket `index` is final on every device, and sums it into the contributions on this thread while the devices continue.
 * Call it in ascending order of the index. */
int replica_set_wait_bucket(struct replica_set *set, unsigned index, struct error *error);
/* Returns whether replica_set_wait_bucket would not wait for a device. */
bool replica_set_bucket_is_final(const struct replica_set *set, unsigned index);
/* Like replica_has_passed and replica_await_passes, for all replicas of the set. */
bool replica_set_has_passed(const struct replica_set *set);
int replica_set_await_passes(struct replica_set *set, struct error *error);
/* Like replica_time_passes and replica_passed_ns; the latter returns when the last device had finished. */
void replica_set_time_passes(struct replica_set *set);
int64_t replica_set_passed_ns(const struct replica_set *set);
/* Returns the event of a bucket, for callers that make a stream of the device wait instead of the host. */
struct device_event *replica_set_bucket_event(const struct replica_set *set, unsigned device, unsigned index);
/* With options.sums.gradients_stay: returns the contributions of one device. The caller must put the sums in the first contribution of each
 * device. */
float *const *replica_set_device_gradients(const struct replica_set *set, unsigned device);
/* Sums the devices' gradients into the only contribution, on the devices (device_reduction.h). Replaces replica_set_wait_bucket for sets
 * without a member. */
int replica_set_reduce(struct replica_set *set, struct error *error);

/* Returns the replicas' streams, one for each device, for callers that make the update in slices. */
struct device_stream *const *replica_set_streams(const struct replica_set *set, unsigned *ret_count);
/* Waits for everything that is queued on these streams. */
int replica_set_synchronise(const struct replica_set *set, struct error *error);
/* Fills a result, except step and norm, from the reduced control words of the batch. */
void replica_set_read_controls(const struct replica_set *set, const float *controls, unsigned size,
                               struct strategy_result *result);
/* Sets the state's step, and moves its position and loss scale past the current batch. */
void replica_set_advance(struct replica_set *set, int64_t step, bool skipped);

/* Takes the optimizer's step with the reduced gradient, which must be in the first contribution (with gradients_stay, in that of each
 * device). Does not update copies of the parameters; replica_set_spread does. */
int replica_set_update(struct replica_set *set, double learning_rate, const float *controls, unsigned size,
                       struct strategy_result *ret_result, struct error *error);
/* Like replica_set_update, and also updates the copies of the parameters. */
int replica_set_apply(struct replica_set *set, double learning_rate, const float *controls, unsigned size,
                      struct strategy_result *ret_result, struct error *error);

#endif
