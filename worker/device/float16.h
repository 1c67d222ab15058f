/* SPDX-License-Identifier: Apache-2.0
 *
 * float16 (IEEE 754 binary16): 10 bits of fraction, numbers up to 65,504, steps of
 * 2^-24 below 2^-14. Rounded to the nearest, of two equally near to the even one;
 * what is too large becomes infinite, a NaN stays one. Shared by all devices.
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

/* The float16 next to x, as a float32. Without branches, for loops of it. */
static inline FLOAT16_DEVICE float float16_round(float x)
{
    const uint32_t bits = float16_bits_of(x), sign = bits & 0x80000000, size = bits & 0x7fffffff;
    const uint32_t cut = (size + 0xfff + (size >> 13 & 1)) & ~(uint32_t)0x1fff;
    /* Where float16 has steps of 2^-24 a float32 beside 1/2 has the same ones. */
    const uint32_t small = float16_bits_of((float16_with_bits(size) + 0.5f) - 0.5f);
    uint32_t rounded = size < 0x38800000 ? small : cut;
    rounded = cut > 0x477fe000 ? 0x7f800000 : rounded;
    rounded = size > 0x7f800000 ? (size | 0x00400000) : rounded;
    return float16_with_bits(sign | rounded);
}

/* The two bytes in which x, which float16_round gave, lies in memory; and what two bytes mean. */
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
