/* SPDX-License-Identifier: Apache-2.0
 *
 * How the passes of a batch's logical shards, which run side by side, tell each
 * other values: at a point each gives its own and waits for those of all others.
 * All pass the same points in the same order. Called on the threads of streams.
 */
#ifndef COXSWAIN_DEVICE_SHARD_EXCHANGE_H
#define COXSWAIN_DEVICE_SHARD_EXCHANGE_H

#include <stddef.h>

#include "common/error.h"

struct shard_exchange {
    unsigned shards;
    /* [shards][count], by shard, the same bits for all; stays until all passes are over. NULL: somebody is gone, and the pass's
     * results are of no use. */
    const double *(*share)(struct shard_exchange *exchange, unsigned shard, unsigned point, const double *own,
                           size_t count);
    /* When all passes are over: fails when a share of theirs has. */
    int (*check)(struct shard_exchange *exchange, struct error *error);
    /* The shard's pass is over, for better or worse: work that failed is skipped, and its shares with it, so whoever waits for one
     * that is over must not go on waiting. In the stream's order behind the pass. NULL: nobody minds. */
    void (*leave)(struct shard_exchange *exchange, unsigned shard);
};

/* Points of a layer. */
static inline unsigned shard_point_forward(unsigned layer)
{
    return 2 * layer;
}
static inline unsigned shard_point_backward(unsigned layer)
{
    return 2 * layer + 1;
}

#endif
