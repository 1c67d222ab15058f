/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/gemm_kernel.h"

#ifdef __x86_64__
#include <immintrin.h>
#include <stddef.h>

#define KERNEL_TARGET __attribute__((target("avx2,fma")))
#define KERNEL_VECTOR __m256
#define KERNEL_LANES 8
#define kernel_zero() _mm256_setzero_ps()
#define kernel_load(p) _mm256_loadu_ps(p)
#define kernel_store(p, v) _mm256_storeu_ps(p, v)
#define kernel_spread(p) _mm256_broadcast_ss(p)
#define kernel_multiply_add(a, b, sum) _mm256_fmadd_ps(a, b, sum)
#define kernel_add(a, b) _mm256_add_ps(a, b)
#define kernel_positive(v) _mm256_andnot_ps(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_LE_OQ), v)
#define kernel_keep(v, by) _mm256_and_ps(_mm256_cmp_ps(by, _mm256_setzero_ps(), _CMP_GT_OQ), v)
#include "worker/device/cpu/gemm_line_template.h"
#include "worker/device/cpu/gemm_tile_template.h"

KERNEL_FUNCTION(1)
KERNEL_FUNCTION(2)

KERNEL_LINES_12(1)
KERNEL_LINES_6(2)

const struct gemm_kernel gemm_kernel_avx2 = {
    .name = "avx2",
    .title = "AVX2",
    .columns = 16,
    .vector = KERNEL_LANES,
    .tile = {tile_1, tile_2},
    .line_rows = {12, 6},
    .line = {{LINES_12(1)}, {LINES_6(2)}},
};
#endif
