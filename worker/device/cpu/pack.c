/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/pack.h"

#include <string.h>

#include "worker/device/cpu/cpu.h"

typedef float lanes8 __attribute__((vector_size(32), aligned(4), may_alias));

/* Zeros from `columns` to the end of its vector of 16, or of the panel. */
static int64_t padded(int64_t columns, int64_t width)
{
    int64_t full = (columns + 15) / 16 * 16;
    return full < width ? full : width;
}

CPU_VECTORISED void pack_rows(const float *source, int64_t stride, int64_t depth, int64_t columns, float *panel,
                              int64_t width)
{
    int64_t end = padded(columns, width);
    for (int64_t k = 0; k < depth; k++) {
        const float *from = source + k * stride;
        float *to = panel + k * width;
        for (int64_t j = 0; j < columns; j++)
            to[j] = from[j];
        for (int64_t j = columns; j < end; j++)
            to[j] = 0;
    }
}

/* Macros, since functions of vectors would have another calling convention on each instruction set. */
#define LOW_PAIRS(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define HIGH_PAIRS(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define LOW_QUADS(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define HIGH_QUADS(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define LOW_HALVES(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define HIGH_HALVES(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)

/* An 8 x 8 block: pairs, then quads, then halves change places. */
static inline __attribute__((always_inline)) void transpose8(const float *from, int64_t stride, float *to,
                                                             int64_t width)
{
    lanes8 r[8], p[8], q[8];
    for (int i = 0; i < 8; i++)
        r[i] = *(const lanes8 *)(from + i * stride);
    for (int i = 0; i < 8; i += 2) {
        p[i] = LOW_PAIRS(r[i], r[i + 1]);
        p[i + 1] = HIGH_PAIRS(r[i], r[i + 1]);
    }
    for (int h = 0; h < 8; h += 4)
        for (int i = 0; i < 2; i++) {
            q[h + 2 * i] = LOW_QUADS(p[h + i], p[h + 2 + i]);
            q[h + 2 * i + 1] = HIGH_QUADS(p[h + i], p[h + 2 + i]);
        }
    for (int i = 0; i < 4; i++) {
        *(lanes8 *)(to + i * width) = LOW_HALVES(q[i], q[i + 4]);
        *(lanes8 *)(to + (i + 4) * width) = HIGH_HALVES(q[i], q[i + 4]);
    }
}

CPU_VECTORISED void pack_transposed(const float *source, int64_t stride, int64_t depth, int64_t columns, float *panel,
                                    int64_t width)
{
    int64_t end = padded(columns, width), k8 = depth / 8 * 8, j8 = columns / 8 * 8;
    for (int64_t j = 0; j < j8; j += 8)
        for (int64_t k = 0; k < k8; k += 8)
            transpose8(source + j * stride + k, stride, panel + k * width + j, width);
    for (int64_t k = 0; k < depth; k++) {
        for (int64_t j = k < k8 ? j8 : 0; j < columns; j++)
            panel[k * width + j] = source[j * stride + k];
        for (int64_t j = columns; j < end; j++)
            panel[k * width + j] = 0;
    }
}
