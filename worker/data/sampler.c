/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data/sampler.h"

#include "common/philox.h"

#define ROUNDS 6

/* Half the bits of the smallest even power of two that holds `count`; at least 1. */
static unsigned half_bits(int64_t count)
{
    unsigned bits = 1;
    while (bits < 31 && (uint64_t)1 << 2 * bits < (uint64_t)count)
        bits++;
    return bits;
}

static uint64_t feistel(const struct sampler *sampler, int64_t epoch, unsigned bits, uint64_t value)
{
    uint64_t mask = ((uint64_t)1 << bits) - 1, left = value >> bits, right = value & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t word = philox(sampler->seed, right << 8 | round, (uint64_t)epoch).word[0];
        uint64_t next = (left ^ word) & mask;
        left = right;
        right = next;
    }
    return left << bits | right;
}

int64_t sampler_index(const struct sampler *sampler, int64_t epoch, int64_t position)
{
    unsigned bits = half_bits(sampler->count);
    uint64_t value = (uint64_t)position;
    do
        value = feistel(sampler, epoch, bits, value);
    while (value >= (uint64_t)sampler->count);
    return (int64_t)value;
}

int64_t sampler_batch(const struct sampler *sampler, int64_t batch, int64_t position)
{
    int64_t left = sampler->count - position;
    return left < batch ? left : batch;
}

void sampler_advance(const struct sampler *sampler, int64_t batch, int64_t *epoch, int64_t *position)
{
    *position += sampler_batch(sampler, batch, *position);
    if (*position >= sampler->count) {
        *position = 0;
        ++*epoch;
    }
}

int64_t sampler_shard(int64_t batch, int64_t shards, int64_t shard, int64_t *ret_first)
{
    *ret_first = batch * shard / shards;
    return batch * (shard + 1) / shards - *ret_first;
}
