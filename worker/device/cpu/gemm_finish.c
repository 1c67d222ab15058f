/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/gemm_finish.h"

#include <stddef.h>

static inline __attribute__((always_inline)) void finish_row(const struct gemm *gemm, const float *sums,
                                                             int64_t columns, const float *restrict bias,
                                                             const float *restrict mask, float *c)
{
    if (bias)
        for (int64_t j = 0; j < columns; j++)
            c[j] = sums[j] + bias[j];
    else if (gemm->accumulate)
        for (int64_t j = 0; j < columns; j++)
            c[j] += sums[j];
    else
        for (int64_t j = 0; j < columns; j++)
            c[j] = sums[j];
    if (gemm->relu)
        for (int64_t j = 0; j < columns; j++)
            c[j] = c[j] <= 0 ? 0 : c[j];
    if (mask)
        for (int64_t j = 0; j < columns; j++)
            c[j] = mask[j] > 0 ? c[j] : 0;
}

CPU_VECTORISED void gemm_finish(const struct gemm *gemm, const struct gemm_block *block, const float *sums,
                                int64_t sums_row)
{
    const float *bias = gemm->bias ? gemm->bias + block->column : NULL;
    for (int64_t r = 0; r < block->rows; r++) {
        int64_t at = (block->row + r) * gemm->c_row + block->column;
        finish_row(gemm, sums + r * sums_row, block->columns, bias, gemm->mask ? gemm->mask + at : NULL, gemm->c + at);
    }
}
