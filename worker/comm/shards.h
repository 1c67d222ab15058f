/* SPDX-License-Identifier: Apache-2.0
 *
 * Says which rank owns which elements of a vector that is sharded over all ranks, for the reduce-scatter and all-gather
 * of a sharded optimizer (collective.h). The vector is cut into stripes of equal length, which belong to ranks 0, 1, 2, …
 * in turn, so that every part of the vector keeps all links busy while it is exchanged.
 */
#ifndef COXSWAIN_COMM_SHARDS_H
#define COXSWAIN_COMM_SHARDS_H

#include <stddef.h>

struct collective_shards {
    size_t head;   /* elements before the first stripe, which belong to that stripe */
    size_t stripe; /* elements of a stripe, at least 1 */
    size_t offset; /* position in the whole vector at which the exchanged vector begins */
};

/* Returns the round of position `at` in the whole vector. A round has one stripe for each of `size` ranks. */
static inline size_t shards_round(const struct collective_shards *shards, unsigned size, size_t at)
{
    return at < shards->head ? 0 : (at - shards->head) / (shards->stripe * size);
}

/* Returns where the stripe of `owner` in a round begins in the whole vector; for owner `size`, where the round ends. */
static inline size_t shards_stripe(const struct collective_shards *shards, unsigned size, size_t round, unsigned owner)
{
    return round == 0 && owner == 0 ? 0 : shards->head + (round * size + owner) * shards->stripe;
}

#endif
