/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums a row of floats, or finds its maximum, for the CPU's operations. The row is always divided
 * over sixteen partial results (lanes), which are then combined in a fixed order. The result
 * therefore has the same bits whatever vector width the processor has, and the loops are fast. The
 * functions are meant to be inlined into CPU_VECTORISED functions.
 */
#ifndef COXSWAIN_DEVICE_CPU_LANES_H
#define COXSWAIN_DEVICE_CPU_LANES_H

#include <stdint.h>
#include <string.h>

#define LANES 16

/* A vector of all lanes. (Compilers split loops over an array of lanes into sixteen scalars.) */
typedef float lanes_vector __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
typedef int32_t lanes_mask __attribute__((vector_size(LANES * sizeof(int32_t))));
#define LANES_AT(x) (*(const lanes_vector *)(x))
#define LANES_TO(x) (*(lanes_vector *)(x))

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
    lanes_vector sum = {0};
    float lanes[LANES];
    int64_t whole = count / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        sum += LANES_AT(x + i);
    memcpy(lanes, &sum, sizeof lanes);
    for (int64_t i = whole; i < count; i++)
        lanes[i - whole] += x[i];
    return lanes_total(lanes);
}

static inline __attribute__((always_inline)) float lanes_dot(const float *x, const float *y, int64_t count)
{
    lanes_vector sum = {0};
    float lanes[LANES];
    int64_t whole = count / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        sum += LANES_AT(x + i) * LANES_AT(y + i);
    memcpy(lanes, &sum, sizeof lanes);
    for (int64_t i = whole; i < count; i++)
        lanes[i - whole] += x[i] * y[i];
    return lanes_total(lanes);
}

/* Returns the maximum of `count` values, at least 1. */
static inline __attribute__((always_inline)) float lanes_maximum(const float *x, int64_t count)
{
    float maximum = x[0];
    int64_t whole = count / LANES * LANES;
    if (whole > 0) {
        lanes_vector most = LANES_AT(x);
        float lanes[LANES];
        for (int64_t i = LANES; i < whole; i += LANES) {
            lanes_vector next = LANES_AT(x + i);
            lanes_mask more = next > most;
            most = (lanes_vector)(((lanes_mask)next & more) | ((lanes_mask)most & ~more));
        }
        memcpy(lanes, &most, sizeof lanes);
        for (int j = 0; j < LANES; j++)
            maximum = lanes[j] > maximum ? lanes[j] : maximum;
    }
    for (int64_t i = whole; i < count; i++)
        maximum = x[i] > maximum ? x[i] : maximum;
    return maximum;
}

#endif
