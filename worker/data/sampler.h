/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of examples in an epoch: a keyed permutation of 0 .. count-1, so that
 * position p of epoch e is found in constant time and without memory, and a
 * resumed run sees exactly the examples it would have seen. A balanced Feistel
 * network over the next even power of two (Luby and Rackoff 1988) with cycle
 * walking (Black and Rogaway 2002).
 */
#ifndef COXSWAIN_DATA_SAMPLER_H
#define COXSWAIN_DATA_SAMPLER_H

#include <stdint.h>

struct sampler {
    uint64_t seed;
    int64_t count; /* examples, at least 1 */
};

/* The example at `position` (0 .. count-1) of `epoch`. */
int64_t sampler_index(const struct sampler *sampler, int64_t epoch, int64_t position);

/* Examples of the batch at `position` of an epoch: `batch`, or what is left at its end. */
int64_t sampler_batch(const struct sampler *sampler, int64_t batch, int64_t position);
/* Moves epoch and position behind that batch. */
void sampler_advance(const struct sampler *sampler, int64_t batch, int64_t *epoch, int64_t *position);

/* Examples of `shard` among `shards` of a batch of `batch` examples: [ret_first, ret_first + returned count). */
int64_t sampler_shard(int64_t batch, int64_t shards, int64_t shard, int64_t *ret_first);

#endif
