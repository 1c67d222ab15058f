/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels over rows of which each thread of a block has 16 bytes: they stay in its
 * registers while the block sums over the row. Some rows go at once, so that a
 * thread has several reads under way, and one barrier serves them all.
 */
#ifndef COXSWAIN_DEVICE_CUDA_ROW_BLOCK_CUH
#define COXSWAIN_DEVICE_CUDA_ROW_BLOCK_CUH

#include "worker/device/cuda/stored.cuh"
#include "worker/device/cuda/warp.cuh"

#define ROW_THREADS_MAX 512
#define ROW_WARPS_MAX (ROW_THREADS_MAX / WARP)

/* Of a block for rows of c values: whole warps. Above ROW_THREADS_MAX they are too wide. */
template <typename Stored> static inline int64_t row_threads(int64_t c)
{
    const int64_t columns = (int64_t)WARP * element_pack<Stored>::LENGTH;
    return (c + columns - 1) / columns * WARP;
}

/* Numbers of each thread become their sums over the block, by warps in order. `places` are for this call alone, until the block's
 * next barrier but one. */
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
