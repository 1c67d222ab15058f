/* SPDX-License-Identifier: Apache-2.0
 *
 * What the shards of one batch tell each other while they are computed side by
 * side (worker/device/shard_exchange.h): those of this process through memory,
 * and the last of them to come brings those of the other processes. Everybody
 * gets the values shard by shard, so that what is made of them has the same bits
 * for any crew.
 */
#ifndef COXSWAIN_STRATEGY_STATISTICS_EXCHANGE_H
#define COXSWAIN_STRATEGY_STATISTICS_EXCHANGE_H

#include <stdint.h>

#include "common/error.h"
#include "worker/comm/collective.h"
#include "worker/device/shard_exchange.h"

struct statistics_exchange;

/* This process has shards [first, end) of `shards`; `layers`: of the model. */
struct statistics_exchange *statistics_exchange_new(unsigned shards, unsigned first, unsigned end, unsigned layers);
void statistics_exchange_free(struct statistics_exchange *exchange);
struct shard_exchange *statistics_exchange_base(struct statistics_exchange *exchange);
/* How long a shard waits for others of this process (the group has deadlines of its own); 300 s unless told. */
void statistics_exchange_set_patience(struct statistics_exchange *exchange, int64_t milliseconds);
/* Between steps. A group of one process, or none: NULL. */
void statistics_exchange_join(struct statistics_exchange *exchange, struct collective *group, unsigned rank,
                              unsigned size);
/* Before a step's passes, when none are under way. */
void statistics_exchange_begin(struct statistics_exchange *exchange);
/* Some of the step's passes will never be made: those under way come to an end, and its check fails. */
void statistics_exchange_abandon(struct statistics_exchange *exchange);

#endif
