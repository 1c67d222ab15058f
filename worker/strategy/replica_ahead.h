/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes the steps of a replica that is the whole crew without waiting for the host between two
 * steps. It is used if the device has a memory of its own.
 *
 * The device itself evaluates each step and skips an update that is refused. So the host queues the
 * update and the passes of the next step before it knows the result, and then reads the result.
 *
 * After a step its update is complete; passes under way only read the state, so it may be copied
 * and saved. If the state has been overwritten, these passes are queued again.
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
