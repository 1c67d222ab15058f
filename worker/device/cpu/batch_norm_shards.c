/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/batch_norm_shards.h"

#include "common/memory.h"
#include "common/scope.h"
#include "worker/device/shard_exchange.h"

/* Returns the words of one shard: rows, then the first value of each column, then the second. */
static size_t words_of(int64_t c)
{
    return (size_t)(1 + 2 * c);
}

const double *batch_norm_exchange(const struct batch_norm_peers *peers, unsigned point, int64_t c,
                                  struct batch_norm_shard_values (*of_column)(const void *op, int64_t column),
                                  const void *op)
{
    if (peers->exchange == NULL)
        return NULL;
    SCOPED_FREE double *own = memory_allocate(words_of(c), sizeof *own);
    for (int64_t i = 0; i < c; i++) {
        struct batch_norm_shard_values told = of_column(op, i);
        own[0] = told.rows;
        own[1 + i] = told.first;
        own[1 + c + i] = told.second;
    }
    return peers->exchange->share(peers->exchange, peers->shard, point, own, words_of(c));
}

struct batch_norm_shard_values batch_norm_shard_values(const double *answer, int64_t c, unsigned shard, int64_t column)
{
    const double *words = answer + shard * words_of(c);
    return (struct batch_norm_shard_values){words[0], words[1 + column], words[1 + c + column]};
}
