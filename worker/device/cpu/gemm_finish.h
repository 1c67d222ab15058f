/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the finished sums of a matrix product into its result c: adds the bias or (`accumulate`) the
 * old c, then applies the rectifier and the mask. Blocks whose sums need none of this and lie in c
 * already are not passed to it.
 */
#ifndef COXSWAIN_DEVICE_CPU_GEMM_FINISH_H
#define COXSWAIN_DEVICE_CPU_GEMM_FINISH_H

#include "worker/device/cpu/gemm.h"

/* Rows [row, row + rows) of columns [column, column + columns) of c. */
struct gemm_block {
    int64_t row, rows, column, columns;
};

/* Fills a block of c from its finished sums, which have `sums_row` floats per row and may lie in
 * c itself. */
void gemm_finish(const struct gemm *gemm, const struct gemm_block *block, const float *sums, int64_t sums_row);

#endif
