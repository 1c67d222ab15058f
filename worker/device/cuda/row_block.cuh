/* SPDX-License-Identifier: Apache-2.0
 *
 * Supports kernels over rows in which each thread of a block holds 16 bytes of a row in registers
 * while the block sums over the row. A block handles several rows at a time, so that a thread has
 * several reads in flight and one barrier serves all rows.
 */
#ifndef COXSWAIN_DEVICE_CUDA_ROW_BLOCK_CUH
#define COXSWAIN_DEVICE_CUDA_ROW_BLOCK_CUH

#include "worker/device/cuda/stored.cuh"
#include "worker/device/cuda/warp.cuh"

#define ROW_THREADS_MAX 512
#define ROW_WARPS_MAX (ROW_THREADS_MAX / WARP)

/* Returns the threads of a block for rows of c values: whole warps. If it exceeds
 * ROW_THREADS_MAX, the rows are too wide. */
template <typename Stored> static inline int64_t row_threads(int64_t c)
{
    const int64_t columns = (int64_t)WARP * element_pack<Stored>::LENGTH;
    return (c + columns - 1) / columns * WARP;
}

/* Replaces each thread's numbers by their sums over the block, added by warps in order. `places`
 * must not be used for anything else until the block's second barrier from here. */
template <int COUNT> static __device__ inline void block_sums(float sums[COUNT], float (*places)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        sums[i] = warp_sum(sums[i]);
    if (blockDim.x == WARP)
        return;
    if (threadIdx.x % WARP == 0)
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            places[threadIdx.x / WARP][i] = sums[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        sums[i] = 0;
    for (int warp = 0; warp < (int)blockDim.x / WARP; warp++)
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            sums[i] += places[warp][i];
}

#endif
