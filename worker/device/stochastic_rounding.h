/* SPDX-License-Identifier: Apache-2.0
 *
 * Stochastic rounding of float32 to bfloat16 and float16: to one of the two numbers
 * beside x, to the upper one with the probability that makes x the mean. What is
 * representable stays, and so do infinities and NaNs; beyond the largest number it
 * is the nearest that counts. One definition for all devices.
 */
#ifndef COXSWAIN_DEVICE_STOCHASTIC_ROUNDING_H
#define COXSWAIN_DEVICE_STOCHASTIC_ROUNDING_H

#include "common/philox.h"
#include "worker/device/bfloat16.h"
#include "worker/device/float16.h"
#include "worker/device/operations.h"

/* The words of elements 4 block .. 4 block + 3. Dropouts of the same key have numbers of examples, all smaller, in the last word. */
static inline PHILOX_DEVICE struct philox_words stochastic_words(uint64_t key, uint32_t step, int64_t block)
{
    return philox(key, (uint64_t)block, (uint64_t)step << 32 | 0xffffffff);
}

static inline PHILOX_DEVICE uint32_t stochastic_step(const struct stochastic_round *op)
{
    return op->values != 0 ? op->values->pass : op->step;
}

/* `word`: any of 2^32, each as likely as others. Sixteen bits of x go, and sixteen of the word say whether they count. */
static inline PHILOX_DEVICE float bfloat16_round_by(float x, uint32_t word)
{
    const uint32_t bits = float16_bits_of(x), near = bfloat16_round_bits(bits);
    const uint32_t drawn = (bits + (word >> 16)) & 0xffff0000;
    return float16_with_bits((bits & 0x7fffffff) > 0x7f7f0000 ? near : drawn);
}

/* Likewise thirteen bits; below 2^-14 the part of a step of 2^-24, to 24 bits behind the point. Masks, not choices, of which a
 * compiler would make branches: loops of it go over vectors. */
static inline PHILOX_DEVICE float float16_round_by(float x, uint32_t word)
{
    const uint32_t bits = float16_bits_of(x), sign = bits & 0x80000000, size = bits & 0x7fffffff;
    const uint32_t is_small = 0u - (uint32_t)(size < 0x38800000), is_large = 0u - (uint32_t)(size > 0x477fe000);
    const uint32_t drawn = (size + (word >> 19)) & ~(uint32_t)0x1fff;
    const float steps = float16_with_bits(size & is_small) * 16777216.0f;
    const float whole = (float)(int32_t)steps, draw = (float)(int32_t)(word >> 8) / 16777216.0f;
    const float small = (whole + (float)(draw < steps - whole)) / 16777216.0f;
    const uint32_t near = float16_bits_of(float16_round(x));
    const uint32_t rounded = sign | (float16_bits_of(small) & is_small) | (drawn & ~is_small);
    return float16_with_bits((near & is_large) | (rounded & ~is_large));
}

#endif
