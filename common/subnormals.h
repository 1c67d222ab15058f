/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the processor treat subnormal numbers as zero. Once a model has learned its data, gradients and momenta shrink into that range,
 * where an operation takes the processor a hundred times as long; nothing in training needs such numbers. Every thread of the worker that
 * computes or sums gradients must call subnormals_flush, otherwise the bits of the sums would differ.
 */
#ifndef COXSWAIN_COMMON_SUBNORMALS_H
#define COXSWAIN_COMMON_SUBNORMALS_H

#if defined(__SSE2__)
#include <xmmintrin.h>

#define FLUSH_RESULTS 0x8000u  /* FTZ of MXCSR */
#define FLUSH_OPERANDS 0x0040u /* DAZ */

/* Flushes subnormals in the calling thread and in threads that it creates later. Every thread that
 * sums gradients must do this, or the bits of the sums would differ. */
static inline void subnormals_flush(void)
{
    _mm_setcsr(_mm_getcsr() | FLUSH_RESULTS | FLUSH_OPERANDS);
}
#elif defined(__aarch64__)
#include <stdint.h>

#define FLUSH_BOTH (UINT64_C(1) << 24) /* FZ of FPCR */

static inline void subnormals_flush(void)
{
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" : : "r"(control | FLUSH_BOTH));
}
#else
static inline void subnormals_flush(void)
{
}
#endif

#endif
