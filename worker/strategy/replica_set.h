/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the replicas of one process, one on each device, act as a single replica.
 *
 * The process's logical shards are divided among its devices in order. Its contributions are the
 * sums over its own subtrees, whichever devices computed their parts.
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
 * VARIABLES_CENTRAL: there is one state, which all read, and one update, of which each device
 * computes a slice; where they do not share memory the first makes the update, and the others
 * have copies of its parameters. */
enum replica_variables { VARIABLES_MIRRORED, VARIABLES_CENTRAL };

/* The shards [first, end) of `shards`, at least one a device. Options are borrowed. */
int replica_set_new(const struct strategy_options *options, enum replica_variables variables, unsigned shards,
                    unsigned first, unsigned end, struct replica_set **ret_set, struct error *error);
/* Adds what replica_set_new will allocate. */
void replica_set_memory_plan(const struct strategy_options *options, enum replica_variables variables,
                             enum device_memory gradients, unsigned shards, unsigned first, unsigned end,
                             struct memory_plans *plans);
/* Where the gradients of a set are that sums them by itself: of several devices in the host's
 * memory. */
enum device_memory replica_set_gradients_place(const struct strategy_options *options);
void replica_set_free(struct replica_set *set);

/* The group in which the set is one of `size` processes. Where layers' statistics are those of
 * the whole batch the passes use it, until they are settled, even when it has been aborted. */
bool replica_set_uses_group(const struct replica_set *set);
void replica_set_join(struct replica_set *set, struct collective *group, unsigned rank, unsigned size);
/* options->state to the other devices' mirrors, or its parameters and progress to their copies. */
int replica_set_spread(struct replica_set *set, struct error *error);

/* What the host has of its parameters to the other devices' copies, where there are any
 * (VARIABLES_CENTRAL). */
int replica_set_give_parameters(struct replica_set *set, struct error *error);
/* The state's step and position to the copies, of which the former and replica_set_spread tell
 * them as well: for who gives them their parameters by another way. */
void replica_set_tell_progress(struct replica_set *set);
/* Those that a device computes with. */
float *replica_set_parameters(const struct replica_set *set, unsigned device);

/* What goes into the sum over the batch: flat gradients in the order of the layout, and control
 * words. */
unsigned replica_set_contributions(const struct replica_set *set);
const float *const *replica_set_gradients(const struct replica_set *set);
const float *const *replica_set_controls(const struct replica_set *set);
/* As a replica's (replica.h). */
int replica_set_start_passes(struct replica_set *set, int64_t *ret_examples, struct error *error);
int replica_set_finish_passes(struct replica_set *set, unsigned rank, unsigned votes, struct error *error);
void replica_set_settle(struct replica_set *set);

/* Waits until bucket `index` is final on every device and sums it into the contributions, on
 * this thread, while the devices go on; ask in ascending order. */
int replica_set_wait_bucket(struct replica_set *set, unsigned index, struct error *error);
/* Whether that would not have to wait for a device. */
bool replica_set_bucket_is_final(const struct replica_set *set, unsigned index);
bool replica_set_has_passed(const struct replica_set *set);
int replica_set_await_passes(struct replica_set *set, struct error *error);
/* Right behind replica_set_start_passes; and once they have been awaited, when the last device
 * was through (replica_time_passes). */
void replica_set_time_passes(struct replica_set *set);
int64_t replica_set_passed_ns(const struct replica_set *set);
/* For who lets a stream of the device wait, and not the host. */
struct device_event *replica_set_bucket_event(const struct replica_set *set, unsigned device, unsigned index);
/* With options.gradients_stay: what one device contributes by itself. The sums are wanted in
 * each device's first. */
float *const *replica_set_device_gradients(const struct replica_set *set, unsigned device);
/* In place of the buckets, where the options have no member: the devices sum their gradients
 * into the only contribution (device_reduction.h). */
int replica_set_reduce(struct replica_set *set, struct error *error);

/* A stream on each device, for whoever makes the update in slices. */
struct device_stream *const *replica_set_streams(const struct replica_set *set, unsigned *ret_count);
/* Waits for what these have queued. */
int replica_set_synchronise(const struct replica_set *set, struct error *error);
/* What the reduced control words say of the batch: everything but step and norm. */
void replica_set_read_controls(const struct replica_set *set, const float *controls, unsigned size,
                               struct strategy_result *result);
/* The state's step and position: those behind the batch under way. */
void replica_set_advance(struct replica_set *set, int64_t step, bool skipped);

/* The optimizer's step with the reduced gradient, which lies in the first contribution (of each
 * device, where gradients stay). */
int replica_set_update(struct replica_set *set, double learning_rate, const float *controls, unsigned size,
                       struct strategy_result *ret_result, struct error *error);
/* That, and copies of the parameters are given what it has made of these: who changes them
 * further leaves that to replica_set_spread. */
int replica_set_apply(struct replica_set *set, double learning_rate, const float *controls, unsigned size,
                      struct strategy_result *ret_result, struct error *error);

#endif
