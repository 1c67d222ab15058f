/* SPDX-License-Identifier: Apache-2.0
 *
 * Philox4x32-10 (Salmon et al. 2011), a counter-based random number generator. Its words depend on the key and the counter only, so any
 * element can be drawn without the ones before it, and every process and device draws the same numbers. The worker uses it for initial
 * weights, the order of examples, augmentation and dropout; the operator for the values of a sweep's trials.
 */
#ifndef COXSWAIN_COMMON_PHILOX_H
#define COXSWAIN_COMMON_PHILOX_H

#include <stdint.h>

/* Lets nvcc compile the function for the GPU, too. */
#ifdef __CUDACC__
#define PHILOX_DEVICE __host__ __device__
#else
#define PHILOX_DEVICE
#endif

struct philox_words {
    uint32_t word[4];
};

static inline PHILOX_DEVICE struct philox_words philox(uint64_t key, uint64_t counter_low, uint64_t counter_high)
{
    uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
    struct philox_words w = {
        {(uint32_t)counter_low, (uint32_t)(counter_low >> 32), (uint32_t)counter_high, (uint32_t)(counter_high >> 32)}};
    for (int round = 0; round < 10; round++) {
        uint64_t left = (uint64_t)0xD2511F53u * w.word[0], right = (uint64_t)0xCD9E8D57u * w.word[2];
        struct philox_words next = {{(uint32_t)(right >> 32) ^ w.word[1] ^ key0, (uint32_t)right,
                                     (uint32_t)(left >> 32) ^ w.word[3] ^ key1, (uint32_t)left}};
        w = next;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return w;
}

#endif
