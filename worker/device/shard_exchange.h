/* SPDX-License-Identifier: Apache-2.0
 *
 * Lets the logical shards of a batch (its fixed parts, whose passes run at the same time) exchange
 * values, for batch normalisation with statistics of the whole batch on CPUs. The strategy
 * implements the functions (strategy/statistics_exchange.h), and layers call them.
 *
 * Each layer has two exchanges, its points: one in the forward and one in the backward pass. At
 * each point every pass gives its own values and waits for those of all others. All passes must
 * visit the same points in the same order. `share` blocks its caller, the thread of the pass's
 * stream.
 */
#ifndef COXSWAIN_DEVICE_SHARD_EXCHANGE_H
#define COXSWAIN_DEVICE_SHARD_EXCHANGE_H

#include <stddef.h>

#include "common/error.h"

struct shard_exchange {
    unsigned shards;
    /* Gives `own` and waits for the others. Returns [shards][count], by shard, the same bits for
     * all; valid until all passes are over. NULL: the exchange has failed, and this pass's
     * results are invalid. */
    const double *(*share)(struct shard_exchange *exchange, unsigned shard, unsigned point, const double *own,
                           size_t count);
    /* Returns, once all passes are over, -1 and the error if one of the calls of `share` failed. */
    int (*check)(struct shard_exchange *exchange, struct error *error);
    /* Reports that the shard's pass has ended, successfully or not. If work of a pass fails, the
     * rest of it is skipped, including its `share` calls; so passes that wait for it must stop
     * waiting. Called in the stream's order after the pass. NULL: nothing to do. */
    void (*leave)(struct shard_exchange *exchange, unsigned shard);
};

/* The points of a layer. */
static inline unsigned shard_point_forward(unsigned layer)
{
    return 2 * layer;
}
static inline unsigned shard_point_backward(unsigned layer)
{
    return 2 * layer + 1;
}

#endif
