/* SPDX-License-Identifier: Apache-2.0
 *
 * Which ranks own which elements of a vector that is shared out: stripes of equal
 * length go to the ranks in turn, so that whatever part of it is under way keeps
 * all links busy.
 */
#ifndef COXSWAIN_COMM_SHARDS_H
#define COXSWAIN_COMM_SHARDS_H

#include <stddef.h>

struct collective_shards {
    size_t head;   /* elements in front of the first stripe, which belong to it */
    size_t stripe; /* elements of each, at least 1 */
    size_t offset; /* where in the whole vector the one at hand begins */
};

/* The round, a stripe for each of `size` ranks, that position `at` of the whole vector is in. */
static inline size_t shards_round(const struct collective_shards *shards, unsigned size, size_t at)
{
    return at < shards->head ? 0 : (at - shards->head) / (shards->stripe * size);
}

/* Where the stripe of `owner` in that round begins in the whole vector; owner `size`: where the round ends. */
static inline size_t shards_stripe(const struct collective_shards *shards, unsigned size, size_t round, unsigned owner)
{
    return round == 0 && owner == 0 ? 0 : shards->head + (round * size + owner) * shards->stripe;
}

#endif
