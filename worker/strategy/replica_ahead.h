/* SPDX-License-Identifier: Apache-2.0
 *
 * Queues a training step on the device before the host knows the result of the step before, so
 * that the device need not wait for the host between two steps. Used if one replica (one device's
 * copy of the model) is all that trains, and its device has memory of its own, as a GPU has.
 *
 * The device itself checks each step: if the loss or the gradient is not finite, it skips the
 * update. So the host can queue the update and the passes of the next step, and only then read the
 * result.
 *
 * When replica_ahead_step returns, the step's update is complete. The next step's passes may be
 * running, but they only read the state, so the state may be copied and saved meanwhile. If the
 * host writes another state to the device, such as a restored checkpoint, passes that were queued
 * before are ignored and queued again.
 */
#ifndef COXSWAIN_STRATEGY_REPLICA_AHEAD_H
#define COXSWAIN_STRATEGY_REPLICA_AHEAD_H

#include "worker/strategy/replica.h"

struct replica_ahead;

/* Creates it for a replica, which must outlive it and must take no steps by itself any more. */
int replica_ahead_new(struct replica *replica, struct replica_ahead **ret_ahead, struct error *error);
/* Waits for work under way and frees. */
void replica_ahead_free(struct replica_ahead *ahead);

/* Takes a whole step (strategy_step). If it fails, nothing has changed. */
int replica_ahead_step(struct replica_ahead *ahead, double learning_rate, unsigned votes,
                       struct strategy_result *ret_result, struct error *error);
/* Waits for passes under way. */
int replica_ahead_settle(struct replica_ahead *ahead, struct error *error);
/* From another thread, during a step: waits for an update that the device has been told to make.
 * The state's position then says whether it was made. */
void replica_ahead_stand_at_boundary(struct replica_ahead *ahead);

#endif
