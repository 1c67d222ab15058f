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

#include "common/error.h"
#include "worker/comm/collective.h"
#include "worker/device/shard_exchange.h"

struct statistics_exchange;

/* This process has shards [first, end) of `shards`; `layers`: of the model. */
struct statistics_exchange *statistics_exchange_new(unsigned shards, unsigned first, unsigned end, unsigned layers);
void statistics_exchange_free(struct statistics_exchange *exchange);
struct shard_exchange *statistics_exchange_base(struct statistics_exchange *exchange);
/* Between steps. A group of one process, or none: NULL. */
void statistics_exchange_join(struct statistics_exchange *exchange, struct collective *group, unsigned rank,
                              unsigned size);
/* Before a step's passes, when none are under way. */
void statistics_exchange_begin(struct statistics_exchange *exchange);

#endif
