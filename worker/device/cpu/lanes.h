/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums and maxima over a row in sixteen fixed lanes: quick, and of the same bits
 * whatever the vector length. To be inlined into CPU_VECTORISED functions.
 */
#ifndef COXSWAIN_DEVICE_CPU_LANES_H
#define COXSWAIN_DEVICE_CPU_LANES_H

#include <stdint.h>

#define LANES 16

static inline __attribute__((always_inline)) float lanes_total(const float lanes[LANES])
{
    float half[8], quarter[4];
    for (int j = 0; j < 8; j++)
        half[j] = lanes[j] + lanes[j + 8];
    for (int j = 0; j < 4; j++)
        quarter[j] = half[j] + half[j + 4];
    return (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
}

static inline __attribute__((always_inline)) float lanes_sum(const float *x, int64_t count)
{
    float lanes[LANES] = {0};
    int64_t whole = count / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int j = 0; j < LANES; j++)
            lanes[j] += x[i + j];
    for (int64_t i = whole; i < count; i++)
        lanes[i - whole] += x[i];
    return lanes_total(lanes);
}

static inline __attribute__((always_inline)) float lanes_dot(const float *x, const float *y, int64_t count)
{
    float lanes[LANES] = {0};
    int64_t whole = count / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int j = 0; j < LANES; j++)
            lanes[j] += x[i + j] * y[i + j];
    for (int64_t i = whole; i < count; i++)
        lanes[i - whole] += x[i] * y[i];
    return lanes_total(lanes);
}

/* `count` at least 1. */
static inline __attribute__((always_inline)) float lanes_maximum(const float *x, int64_t count)
{
    float lanes[LANES], maximum = x[0];
    for (int j = 0; j < LANES; j++)
        lanes[j] = x[0];
    int64_t whole = count / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int j = 0; j < LANES; j++)
            lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
    for (int64_t i = whole; i < count; i++)
        maximum = x[i] > maximum ? x[i] : maximum;
    for (int j = 0; j < LANES; j++)
        maximum = lanes[j] > maximum ? lanes[j] : maximum;
    return maximum;
}

#endif
