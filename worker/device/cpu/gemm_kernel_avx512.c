/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/gemm_kernel.h"

#ifdef __x86_64__
#include <immintrin.h>
#include <stddef.h>

#define KERNEL_TARGET __attribute__((target("avx512f")))
#define KERNEL_VECTOR __m512
#define KERNEL_LANES 16
#define kernel_zero() _mm512_setzero_ps()
#define kernel_load(p) _mm512_loadu_ps(p)
#define kernel_store(p, v) _mm512_storeu_ps(p, v)
#define kernel_spread(p) _mm512_set1_ps(*(p))
#define kernel_multiply_add(a, b, sum) _mm512_fmadd_ps(a, b, sum)
#define kernel_add(a, b) _mm512_add_ps(a, b)
#define kernel_positive(v) _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_NLE_UQ), v)
#define kernel_keep(v, by) _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(by, _mm512_setzero_ps(), _CMP_GT_OQ), v)
#include "worker/device/cpu/gemm_line_template.h"
#include "worker/device/cpu/gemm_tile_template.h"

KERNEL_FUNCTION(1)
KERNEL_FUNCTION(2)
KERNEL_FUNCTION(3)
KERNEL_FUNCTION(4)

KERNEL_LINES_12(1)
KERNEL_LINE(13, 1)
KERNEL_LINE(14, 1)
KERNEL_LINE(15, 1)
KERNEL_LINE(16, 1)
KERNEL_LINES_12(2)
KERNEL_LINE(13, 2)
KERNEL_LINE(14, 2)

const struct gemm_kernel gemm_kernel_avx512 = {
    .name = "avx512",
    .title = "AVX-512",
    .columns = 64,
    .vector = KERNEL_LANES,
    .tile = {tile_1, tile_2, tile_3, tile_4},
    .line_rows = {16, 14},
    .line = {{LINES_12(1), line_13_1, line_14_1, line_15_1, line_16_1}, {LINES_12(2), line_13_2, line_14_2}},
};
#endif
