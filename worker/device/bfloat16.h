/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounds float32 to bfloat16, the upper half of a float32: to nearest, ties to even. Values that
 * are too large become infinite; a NaN stays a NaN. CPU code and CUDA kernels compile the same
 * functions, so that all devices give the same bits.
 */
#ifndef COXSWAIN_DEVICE_BFLOAT16_H
#define COXSWAIN_DEVICE_BFLOAT16_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define BFLOAT16_DEVICE __host__ __device__
#else
#define BFLOAT16_DEVICE
#endif

/* Returns the bits of the nearest bfloat16, as a float32 (the lower half is zero). */
static inline BFLOAT16_DEVICE uint32_t bfloat16_round_bits(uint32_t bits)
{
    const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1), quiet = bits | 0x00400000;
    return ((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded) & 0xffff0000;
}

static inline BFLOAT16_DEVICE float bfloat16_round(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = bfloat16_round_bits(bits);
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
