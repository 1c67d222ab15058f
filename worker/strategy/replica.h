/* SPDX-License-Identifier: Apache-2.0
 *
 * One mirror of the model on one device, and its part of a step: it reads the
 * examples of its logical shards, runs them one after another, sums their
 * gradients up to the maximal subtrees that are its own, and applies the reduced
 * gradient. Strategies put the reduction between the two.
 */
#ifndef COXSWAIN_STRATEGY_REPLICA_H
#define COXSWAIN_STRATEGY_REPLICA_H

#include "worker/device/device.h"
#include "worker/strategy/reduction_tree.h"
#include "worker/strategy/strategy.h"

/* What travels beside the gradients, as float32, summed in the same tree: */
enum control_word { CONTROL_LOSS, CONTROL_CORRECT, CONTROL_VOTES }; /* from CONTROL_VOTES on: one for each rank */
#define CONTROL_WORDS_MAX (CONTROL_VOTES + CREW_SIZE_MAX)

struct replica;

/* The shards [first, end) of options->logical_shards. Options are borrowed. */
int replica_new(const struct strategy_options *options, unsigned shards, unsigned first, unsigned end,
                struct replica **ret_replica, struct error *error);
void replica_free(struct replica *replica);

/* The passes of its shards run side by side with all others of the batch, and tell each other values; right after replica_new. */
struct shard_exchange;
int replica_use_exchange(struct replica *replica, struct shard_exchange *exchange, struct error *error);

/* From now on launches of passes that come again are recorded, where the device can do that; right after replica_new. */
int replica_record(struct replica *replica, struct error *error);

/* Adds what replica_new will allocate, and with `side_by_side` replica_use_exchange. `gradients`: where those are that it
 * contributes; others of its process or crew read them in shared memory. */
void replica_memory_plan(const struct strategy_options *options, enum device_memory gradients, unsigned shards,
                         unsigned first, unsigned end, bool side_by_side, struct memory_plans *plans);

/* Its control words, for each subtree of its cover. */
const float *const *replica_controls(const struct replica *replica);

/* Enqueues all passes of the batch at the state's position. *ret_examples: in the global batch. */
int replica_launch_passes(struct replica *replica, int64_t *ret_examples, struct error *error);
/* Reads the next batch while the device works. */
int replica_read_ahead(struct replica *replica, struct error *error);
/* Both. */
int replica_start_passes(struct replica *replica, int64_t *ret_examples, struct error *error);
/* Recorded in the passes that are under way, once bucket `index` of every contribution is final. */
struct device_event;
struct device_event *replica_bucket_event(const struct replica *replica, unsigned index);
/* Waits until bucket `index` of every contribution is final; ask in ascending order. */
int replica_wait_bucket(struct replica *replica, unsigned index, struct error *error);
/* Whether that would return at once. */
bool replica_bucket_is_final(const struct replica *replica, unsigned index);
/* Whether replica_finish_passes would return at once. */
bool replica_has_passed(const struct replica *replica);
/* Waits for the passes; fails with what has gone wrong in them here, not with what that has come to in others'. */
int replica_await_passes(struct replica *replica, struct error *error);
/* Right behind replica_launch_passes, for who has other things to wait for than the passes: replica_passed_ns tells then, once they
 * have been awaited, when they were over. */
void replica_time_passes(struct replica *replica);
int64_t replica_passed_ns(const struct replica *replica);
/* After the last bucket: fills the control words; `votes` go in for `rank`. */
int replica_finish_passes(struct replica *replica, unsigned rank, unsigned votes, struct error *error);

/* Waits for what a failed step has left under way; its errors belong to that step. */
void replica_settle(struct replica *replica);

/* The optimizer's step with the reduced gradient, which lies in the first contribution, then the position moves on. Fills the
 * result from the reduced control words of a crew of `size`. */
int replica_apply(struct replica *replica, double learning_rate, const float *controls, unsigned size,
                  struct strategy_result *ret_result, struct error *error);

#endif
