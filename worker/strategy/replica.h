/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one device's part of a training step. A replica is a copy of the model on one device; the strategies create one
 * per device, by replica_set.h or directly.
 *
 * A replica owns some of the logical shards, the fixed parts into which each batch is cut. It reads their examples,
 * runs their passes one after another, and sums their gradients as far as the reduction tree (reduction_tree.h) allows
 * without other replicas. The sums over these maximal subtrees are its contributions. Then the strategy reduces the
 * contributions of all replicas, and the replica applies the reduced gradient.
 */
#ifndef COXSWAIN_STRATEGY_REPLICA_H
#define COXSWAIN_STRATEGY_REPLICA_H

#include "worker/device/device.h"
#include "worker/strategy/reduction_tree.h"
#include "worker/strategy/strategy.h"

/* The control words, which travel beside the gradients as float32 and are summed in the same tree. Each rank has a word from
 * CONTROL_VOTES on. CONTROL_COUNT is read only if the model ignores some targets. */
enum control_word { CONTROL_LOSS, CONTROL_CORRECT, CONTROL_COUNT, CONTROL_VOTES };
#define CONTROL_WORDS_MAX (CONTROL_VOTES + CREW_SIZE_MAX)

struct replica;

/* Creates a replica for the shards [first, end) of `shards`. `options` are copied; what they point to must outlive the replica. */
int replica_new(const struct strategy_options *options, unsigned shards, unsigned first, unsigned end,
                struct replica **ret_replica, struct error *error);
void replica_free(struct replica *replica);

/* Makes the passes of its shards run side by side with all others of the batch and exchange values. Call it right after replica_new. */
struct shard_exchange;
int replica_use_exchange(struct replica *replica, struct shard_exchange *exchange, struct error *error);

/* Makes the replica record the launches of its passes and replay them, if the device can do that. Call it right after replica_new. */
int replica_record(struct replica *replica, struct error *error);

/* Adds what replica_new will allocate, and with `side_by_side` what replica_use_exchange will. `gradients`: the memory of its
 * contributions; MEMORY_SHARED if other devices or processes read them. */
void replica_memory_plan(const struct strategy_options *options, enum device_memory gradients, unsigned shards,
                         unsigned first, unsigned end, bool side_by_side, struct memory_plans *plans);

/* Returns the control words of each contribution. */
const float *const *replica_controls(const struct replica *replica);

/* Queues all passes of the batch at the state's position. *ret_examples: examples in the global batch. */
int replica_launch_passes(struct replica *replica, int64_t *ret_examples, struct error *error);
/* Reads the next batch while the device works. */
int replica_read_ahead(struct replica *replica, struct error *error);
/* Calls replica_launch_passes, then replica_read_ahead. */
int replica_start_passes(struct replica *replica, int64_t *ret_examples, struct error *error);
/* Returns an event that is done once bucket `index` of every contribution is final, in the passes under way. */
struct device_event;
struct device_event *replica_bucket_event(const struct replica *replica, unsigned index);
/* Waits until bucket `index` of every contribution is final. Call it in ascending order of the index. */
int replica_wait_bucket(struct replica *replica, unsigned index, struct error *error);
/* Returns whether replica_wait_bucket would return at once. */
bool replica_bucket_is_final(const struct replica *replica, unsigned index);
/* Returns whether replica_finish_passes would return at once. */
bool replica_has_passed(const struct replica *replica);
/* Waits for the passes. Fails if passes of this replica have failed, not if they only suffer from another replica's failure. */
int replica_await_passes(struct replica *replica, struct error *error);
/* Makes replica_passed_ns return the time (clock_monotonic_ns) at which the passes ended. Call it right after replica_launch_passes, and
 * replica_passed_ns after the passes have been awaited. */
void replica_time_passes(struct replica *replica);
int64_t replica_passed_ns(const struct replica *replica);
/* Waits for the passes and fills the control words; `votes` is the word of `rank`. */
int replica_finish_passes(struct replica *replica, unsigned rank, unsigned votes, struct error *error);

/* Waits for passes that a failed step has left running, and ignores their errors. */
void replica_settle(struct replica *replica);

/* Takes the optimizer's step with the reduced gradient, which must be in the first contribution, and advances the position. Fills the
 * result from the reduced control words of a crew of `size` ranks. */
int replica_apply(struct replica *replica, double learning_rate, const float *controls, unsigned size,
                  struct strategy_result *ret_result, struct error *error);

#endif
