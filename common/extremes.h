/* SPDX-License-Identifier: Apache-2.0
 *
 * Returns the smaller or the larger of two integers.
 */
#ifndef COXSWAIN_COMMON_EXTREMES_H
#define COXSWAIN_COMMON_EXTREMES_H

#include <stddef.h>
#include <stdint.h>

static inline int64_t int64_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t int64_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline size_t size_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

#endif
