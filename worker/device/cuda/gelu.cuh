/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the tanh form of GELU and its slope. (1 + tanh(u)) / 2 is computed as 1 / (1 + e^-2u),
 * with one power and one quotient: with tanhf the kernels would be bound by arithmetic instead of
 * memory.
 */
#ifndef COXSWAIN_DEVICE_CUDA_GELU_CUH
#define COXSWAIN_DEVICE_CUDA_GELU_CUH

#include "worker/device/cuda/quick_math.cuh"

#define GELU_TWICE 1.5957691216057308f /* 2 sqrt(2 / pi) */
#define GELU_CUBE 0.044715f

/* 1 / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3). */
static __device__ inline float gelu_share(float x)
{
    const float inside = fmaf(x * x, -GELU_TWICE * GELU_CUBE * LOG2_E, -GELU_TWICE * LOG2_E);
    return quick_quotient(1.0f, 1.0f + quick_power(x * inside));
}

static __device__ inline float gelu_of(float x)
{
    return x * gelu_share(x);
}

static __device__ inline float gelu_slope(float x)
{
    const float share = gelu_share(x), slope = fmaf(x * x, 3 * GELU_CUBE * GELU_TWICE, GELU_TWICE);
    return fmaf(x * share * (1.0f - share), slope, share);
}

#endif
