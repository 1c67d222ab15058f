/* SPDX-License-Identifier: Apache-2.0
 *
 * Applies bias, accumulation, rectifier and mask to the finished sums of a matrix product. gemm.c
 * and gemm_library.c call it for each block of the result whose sums are finished.
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
