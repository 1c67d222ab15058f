/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes powers and quotients with the GPU's special function units: in an instruction or two,
 * with a relative error of a few parts in 10^7 unless the result is very small.
 */
#ifndef COXSWAIN_DEVICE_CUDA_QUICK_MATH_CUH
#define COXSWAIN_DEVICE_CUDA_QUICK_MATH_CUH

#include <math.h>

#define LOG2_E 1.4426950408889634f

/* Returns 2^x; 0 if that is below 2^-126. */
static __device__ inline float quick_power(float x)
{
#ifdef __CUDA_ARCH__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return exp2f(x);
#endif
}

static __device__ inline float quick_quotient(float x, float y)
{
#ifdef __CUDA_ARCH__
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(y));
    return x * inverse;
#else
    return x / y;
#endif
}

#endif
