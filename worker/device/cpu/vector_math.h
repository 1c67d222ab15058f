/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes exp and tanh for the CPU's operations, as straight-line float32 arithmetic: loops over
 * them vectorise and give the same bits on every instruction set. The relative error of exp is
 * below 2e-7 (degree-6 polynomial on [-ln2/2, ln2/2]; results below 2^-126 become 2^-126, above
 * FLT_MAX about 2^127); the absolute error of tanh is below 3e-7.
 */
#ifndef COXSWAIN_DEVICE_CPU_VECTOR_MATH_H
#define COXSWAIN_DEVICE_CPU_VECTOR_MATH_H

#include <stdint.h>
#include <string.h>

static inline __attribute__((always_inline)) float vector_exp(float x)
{
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    float turns = (x * 1.44269504f + 12582912.0f) - 12582912.0f; /* nearest whole number of log2(e) x */
    float r = (x - turns * 0.693359375f) + turns * 2.12194440e-4f;
    float p = 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    uint32_t bits = ((uint32_t)(int32_t)turns + 127) << 23; /* meaningless if p is not a number */
    float power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

static inline __attribute__((always_inline)) float vector_tanh(float x)
{
    return 1.0f - 2.0f / (vector_exp(2.0f * x) + 1.0f);
}

#endif
