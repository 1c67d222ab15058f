/* SPDX-License-Identifier: Apache-2.0
 *
 * What the batch normalisations share: x[rows,C] cut into blocks of rows that
 * stay in the nearest cache, and y = x * slope + start for every column, to which
 * what goes past is added.
 */
#ifndef COXSWAIN_DEVICE_CPU_BATCH_NORM_H
#define COXSWAIN_DEVICE_CPU_BATCH_NORM_H

#include "worker/device/cpu/cpu.h"

#define BATCH_NORM_EPSILON 1e-5f
#define BATCH_NORM_BLOCK_FLOATS 4096
#define BATCH_NORM_PARTS 4 /* of a column's rows, summed apart and joined as (0 + 1) + (2 + 3) */

/* Rows of a block, by the width alone; at least 1. */
static inline int64_t batch_norm_block_rows(int64_t c)
{
    return c < BATCH_NORM_BLOCK_FLOATS / 8 ? BATCH_NORM_BLOCK_FLOATS / c : 8;
}
static inline int64_t batch_norm_blocks(int64_t rows, int64_t c)
{
    return (rows + batch_norm_block_rows(c) - 1) / batch_norm_block_rows(c);
}
static inline int64_t batch_norm_rows_of(int64_t rows, int64_t c, int64_t block)
{
    int64_t each = batch_norm_block_rows(c), left = rows - block * each;
    return left < each ? left : each;
}

struct batch_norm_line {
    int64_t rows, c;
    const float *x, *slope, *start; /* [C] */
    float *y;
    bool relu;
    const float *past; /* or NULL */
};
void batch_norm_line(const struct cpu_call *call, const struct batch_norm_line *line);

#endif
