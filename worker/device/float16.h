/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts float32 to float16 (IEEE 754 binary16) and back: 10 bits of fraction, numbers up to
 * 65,504, steps of 2^-24 below 2^-14. Rounds to nearest, ties to even. Values that are too large
 * become infinite; a NaN stays a NaN. CPU code and CUDA kernels compile the same functions, so that
 * all devices give the same bits.
 */
#ifndef COXSWAIN_DEVICE_FLOAT16_H
#define COXSWAIN_DEVICE_FLOAT16_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define FLOAT16_DEVICE __host__ __device__
#else
#define FLOAT16_DEVICE
#endif

#define FLOAT16_MAX 65504.0f

static inline FLOAT16_DEVICE uint32_t float16_bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline FLOAT16_DEVICE float float16_with_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Returns the nearest float16 as a float32. Has no branches, so that loops vectorise. */
static inline FLOAT16_DEVICE float float16_round(float x)
{
    const uint32_t bits = float16_bits_of(x), sign = bits & 0x80000000, size = bits & 0x7fffffff;
    const uint32_t cut = (size + 0xfff + (size >> 13 & 1)) & ~(uint32_t)0x1fff;
    /* Adding 0.5 rounds to steps of 2^-24, which is the step of a float32 at 1/2 and of a small
     * float16. */
    const uint32_t small = float16_bits_of((float16_with_bits(size) + 0.5f) - 0.5f);
    uint32_t rounded = size < 0x38800000 ? small : cut;
    rounded = cut > 0x477fe000 ? 0x7f800000 : rounded;
    rounded = size > 0x7f800000 ? (size | 0x00400000) : rounded;
    return float16_with_bits(sign | rounded);
}

/* Converts a result of float16_round to its two bytes in memory, and back. */
static inline FLOAT16_DEVICE uint16_t float16_pack(float x)
{
    const uint32_t bits = float16_bits_of(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size >= 0x7f800000)
        return (uint16_t)(sign | (size > 0x7f800000 ? 0x7e00 : 0x7c00));
    if (size < 0x38800000)
        return (uint16_t)(sign | (uint32_t)(float16_with_bits(size) * 16777216.0f));
    return (uint16_t)(sign | (size - 0x38000000) >> 13);
}

static inline FLOAT16_DEVICE float float16_unpack(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, size = half & 0x7fff;
    if (size >= 0x7c00)
        return float16_with_bits(sign | 0x7f800000 | (size & 0x3ff) << 13);
    if (size < 0x400)
        return float16_with_bits(sign | float16_bits_of((float)size / 16777216.0f));
    return float16_with_bits(sign | ((size << 13) + 0x38000000));
}

#endif
