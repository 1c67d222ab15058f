/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which examples make up each batch: shuffles the examples of each epoch, and divides a batch into
 * shards. The order is a keyed permutation of 0 .. count-1: the example at position p of epoch e is computed
 * in constant time and without memory. Processes with the same seed therefore compute the same order without
 * communicating, and a resumed run sees exactly the examples that it would have seen. Method: a balanced
 * Feistel network over the next even power of two (Luby and Rackoff 1988) with cycle walking (Black and
 * Rogaway 2002).
 */
#ifndef COXSWAIN_DATA_SAMPLER_H
#define COXSWAIN_DATA_SAMPLER_H

#include <stdint.h>

struct sampler {
    uint64_t seed;
    int64_t count; /* examples, at least 1 */
};

/* Returns the example at `position` (0 .. count-1) of `epoch`. */
int64_t sampler_index(const struct sampler *sampler, int64_t epoch, int64_t position);

/* Returns the size of the batch at `position` of an epoch: `batch`, or fewer at the end of the
 * epoch. */
int64_t sampler_batch(const struct sampler *sampler, int64_t batch, int64_t position);
/* Moves epoch and position to the batch after it. */
void sampler_advance(const struct sampler *sampler, int64_t batch, int64_t *epoch, int64_t *position);

/* Returns how many of a batch's `batch` examples belong to `shard` of `shards`; *ret_first is the
 * first of them. */
int64_t sampler_shard(int64_t batch, int64_t shards, int64_t shard, int64_t *ret_first);

#endif
