/* SPDX-License-Identifier: Apache-2.0
 *
 * What a layer does to a matrix product on the way out: bias, accumulation,
 * rectifier, mask.
 */
#ifndef COXSWAIN_DEVICE_CPU_GEMM_FINISH_H
#define COXSWAIN_DEVICE_CPU_GEMM_FINISH_H

#include "worker/device/cpu/gemm.h"

/* Rows [row, row + rows) of columns [column, column + columns) of c. */
struct gemm_block {
    int64_t row, rows, column, columns;
};

/* Fills the block of c from its finished sums, `sums_row` floats a row; they may lie in c itself. */
void gemm_finish(const struct gemm *gemm, const struct gemm_block *block, const float *sums, int64_t sums_row);

#endif
