/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/gemm_kernel.h"

#include <stddef.h>

/* Four lanes fit every processor with 128-bit registers (SSE2, NEON, VSX). */
typedef float lanes __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t lanes_mask __attribute__((vector_size(16)));

#define KERNEL_TARGET
#define KERNEL_VECTOR lanes
#define KERNEL_LANES 4
#define kernel_zero() ((lanes){0})
#define kernel_load(p) (*(const lanes *)(p))
#define kernel_store(p, v) (*(lanes *)(p) = (v))
#define kernel_spread(p) ((lanes){*(p), *(p), *(p), *(p)})
#define kernel_multiply_add(a, b, sum) ((sum) + (a) * (b))
#define kernel_add(a, b) ((a) + (b))
#define kernel_keep(v, by) ((lanes)((lanes_mask)((by) > (lanes){0}) & (lanes_mask)(v)))
#define kernel_positive(v) ((lanes)(~(lanes_mask)((v) <= (lanes){0}) & (lanes_mask)(v)))
#include "worker/device/cpu/gemm_line_template.h"
#include "worker/device/cpu/gemm_tile_template.h"

KERNEL_FUNCTION(1)
KERNEL_FUNCTION(2)

KERNEL_LINES_12(1)
KERNEL_LINES_6(2)

const struct gemm_kernel gemm_kernel_portable = {
    .name = "portable",
    .title = "portable vectors",
    .columns = 8,
    .vector = KERNEL_LANES,
    .tile = {tile_1, tile_2},
    .line_rows = {12, 6},
    .line = {{LINES_12(1)}, {LINES_6(2)}},
};
