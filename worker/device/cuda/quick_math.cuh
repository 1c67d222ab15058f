/* SPDX-License-Identifier: Apache-2.0
 *
 * Powers and quotients by the units that a GPU has for them: right to some parts
 * in 10^7 of a result that is not very small, in an instruction or two.
 */
#ifndef COXSWAIN_DEVICE_CUDA_QUICK_MATH_CUH
#define COXSWAIN_DEVICE_CUDA_QUICK_MATH_CUH

#include <math.h>

#define LOG2_E 1.4426950408889634f

/* 2 to the power of x; below 2^-126 it is 0. */
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
