/* SPDX-License-Identifier: Apache-2.0
 *
 * Provides what the CPU's batch normalisations (forward, backward, inference) share. The input
 * x[rows,C] is cut into blocks of rows that stay in the nearest cache; the cut depends only on C,
 * so that sums have the same bits for any number of threads. batch_norm_line computes y = x * slope
 * + start for every column.
 */
#ifndef COXSWAIN_DEVICE_CPU_BATCH_NORM_H
#define COXSWAIN_DEVICE_CPU_BATCH_NORM_H

#include "worker/device/cpu/cpu.h"

#define BATCH_NORM_EPSILON 1e-5f
#define BATCH_NORM_BLOCK_FLOATS 4096
#define BATCH_NORM_PARTS 4 /* partial sums of a column's rows, joined as (0 + 1) + (2 + 3) */

/* Returns the rows of a block, at least 1; depends only on the width. */
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
    const float *past; /* NULL, or added to x * slope + start before the rectifier */
};
void batch_norm_line(const struct cpu_call *call, const struct batch_norm_line *line);

#endif
