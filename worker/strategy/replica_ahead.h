/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of a replica that is the whole crew, where the device has a memory of
 * its own: it finds out by itself what a step has come to, and does not make an
 * update that is refused. So the host queues the update before it knows, and
 * the passes of the next step behind it; then it hears of the step that it was
 * asked for. The device goes from one step to the next without the host.
 *
 * When a step is over its update is made, and passes that are under way only read
 * the state: it may be copied and saved. They are queued anew should it have been
 * overwritten.
 */
#ifndef COXSWAIN_STRATEGY_REPLICA_AHEAD_H
#define COXSWAIN_STRATEGY_REPLICA_AHEAD_H

#include "worker/strategy/replica.h"

struct replica_ahead;

/* The replica is borrowed; it takes no step by itself any more. */
int replica_ahead_new(struct replica *replica, struct replica_ahead **ret_ahead, struct error *error);
/* Waits for what is under way. */
void replica_ahead_free(struct replica_ahead *ahead);

/* A whole step (strategy_step). Nothing has changed when it fails. */
int replica_ahead_step(struct replica_ahead *ahead, double learning_rate, unsigned votes,
                       struct strategy_result *ret_result, struct error *error);
/* Waits for passes that are under way. */
int replica_ahead_settle(struct replica_ahead *ahead, struct error *error);
/* While it is under way, from another thread: waits for an update that the device has been told to make, and the state's position
 * says whether it did. */
void replica_ahead_stand_at_boundary(struct replica_ahead *ahead);

#endif
