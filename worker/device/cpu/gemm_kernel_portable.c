/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/gemm_kernel.h"

#include <stddef.h>

/* Four lanes fit every processor with 128-bit registers (SSE2, NEON, VSX). */
typedef float lanes __attribute__((vector_size(16), aligned(4), may_alias));

#define KERNEL_TARGET
#define KERNEL_VECTOR lanes
#define KERNEL_LANES 4
#define kernel_zero() ((lanes){0})
#define kernel_load(p) (*(const lanes *)(p))
#define kernel_store(p, v) (*(lanes *)(p) = (v))
#define kernel_spread(p) ((lanes){*(p), *(p), *(p), *(p)})
#define kernel_multiply_add(a, b, sum) ((sum) + (a) * (b))
#include "worker/device/cpu/gemm_tile_template.h"

KERNEL_FUNCTION(1)
KERNEL_FUNCTION(2)

const struct gemm_kernel gemm_kernel_portable = {
    .name = "portable",
    .title = "portable vectors",
    .columns = 8,
    .vector = KERNEL_LANES,
    .tile = {tile_1, tile_2},
};
