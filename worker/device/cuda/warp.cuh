/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes sums and maxima over the 32 lanes of a warp. All lanes get the result; the order of
 * additions is a fixed butterfly. Kernels over rows use one warp per row.
 */
#ifndef COXSWAIN_DEVICE_CUDA_WARP_CUH
#define COXSWAIN_DEVICE_CUDA_WARP_CUH

#include "worker/device/cuda/launch.cuh"

#define WARP 32
#define ROWS_PER_BLOCK 4 /* warps per block */

template <typename Number> static __device__ inline Number warp_sum(Number x)
{
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        x += __shfl_xor_sync(~0u, x, distance);
    return x;
}

static __device__ inline float warp_maximum(float x)
{
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        x = fmaxf(x, __shfl_xor_sync(~0u, x, distance));
    return x;
}

static __device__ inline int warp_minimum(int x)
{
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        x = min(x, __shfl_xor_sync(~0u, x, distance));
    return x;
}

/* Defines the row and lane of this thread. Warps without a row return. */
#define EACH_ROW(row, lane, rows)                                                                                      \
    const int lane = threadIdx.x;                                                                                      \
    const int64_t row = (int64_t)blockIdx.x * ROWS_PER_BLOCK + threadIdx.y;                                            \
    if (row >= (rows))                                                                                                 \
    return

template <typename... Arguments>
static void launch_rows(const struct cuda_call *call, int64_t rows, void (*kernel)(Arguments...),
                        Arguments... arguments)
{
    if (rows > 0)
        launch_kernel(call, (unsigned)((rows + ROWS_PER_BLOCK - 1) / ROWS_PER_BLOCK), dim3(WARP, ROWS_PER_BLOCK), 0,
                      kernel, arguments...);
}

/* Reports that `value` is outside 0..limit-1, unless the stream has a fault already. */
static __device__ inline void report_fault(struct cuda_fault *fault, int32_t kind, int32_t value, int64_t limit)
{
    volatile struct cuda_fault *word = fault;
    if (word->kind != CUDA_FAULT_NONE)
        return;
    word->value = value;
    word->limit = limit;
    __threadfence_system();
    word->kind = kind;
}

#endif
