/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements shard_exchange.h: exchanges values between the logical shards (fixed parts) of one batch while they are
 * computed side by side, for layers with statistics of the whole batch. replica_set.c and one_device.c create one if
 * the model has such a layer.
 *
 * Shards of one process exchange values through memory. The last of them to arrive fetches the values of the other processes. Every shard
 * gets the values ordered by shard, so that results have the same bits for any number of ranks.
 */
#ifndef COXSWAIN_STRATEGY_STATISTICS_EXCHANGE_H
#define COXSWAIN_STRATEGY_STATISTICS_EXCHANGE_H

#include <stdint.h>

#include "common/error.h"
#include "worker/comm/collective.h"
#include "worker/device/shard_exchange.h"

struct statistics_exchange;

/* Creates an exchange for a process that computes shards [first, end) of `shards`, of a model
 * with `layers` layers. */
struct statistics_exchange *statistics_exchange_new(unsigned shards, unsigned first, unsigned end, unsigned layers);
void statistics_exchange_free(struct statistics_exchange *exchange);
/* Returns the exchange as the interface that layers call. */
struct shard_exchange *statistics_exchange_base(struct statistics_exchange *exchange);
/* Sets how long a shard waits for the other shards of this process; the default is 300 s. The
 * group has deadlines of its own. */
void statistics_exchange_set_patience(struct statistics_exchange *exchange, int64_t milliseconds);
/* Sets the group through which values of other processes come; NULL if there are none. Call it
 * between steps. */
void statistics_exchange_join(struct statistics_exchange *exchange, struct collective *group, unsigned rank,
                              unsigned size);
/* Resets the exchange for a step. No passes may be under way. */
void statistics_exchange_begin(struct statistics_exchange *exchange);
/* Ends the step's passes early, because some of them could not be started: their check then
 * fails. */
void statistics_exchange_abandon(struct statistics_exchange *exchange);

#endif
