/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/stored.cuh"
#include "worker/device/cuda/warp.cuh"

#define THREADS 256

/* One block of threads a block of elements. */
template <bool ALIGNED> static __global__ void sum_block(struct square_sums op)
{
    typedef element_pack<float> pack;
    __shared__ double sums[THREADS / WARP];
    const int64_t first = (int64_t)blockIdx.x * SQUARE_SUM_BLOCK;
    const int64_t end = min(first + SQUARE_SUM_BLOCK, op.count), whole = end - (end - first) % pack::LENGTH;
    double sum = 0;
#pragma unroll 4
    for (int64_t i = first + threadIdx.x * pack::LENGTH; i < whole; i += THREADS * pack::LENGTH) {
        const pack some = read_pack<ALIGNED>(op.x + i, pack::LENGTH);
#pragma unroll
        for (int k = 0; k < pack::LENGTH; k++)
            sum += (double)some.at[k] * (double)some.at[k];
    }
    if (whole + threadIdx.x < end)
        sum += (double)op.x[whole + threadIdx.x] * (double)op.x[whole + threadIdx.x];
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0)
        sums[threadIdx.x / WARP] = sum;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int warp = 1; warp < THREADS / WARP; warp++)
        sum += sums[warp];
    op.sums[blockIdx.x] = sum;
}

void cuda_square_sums(const struct cuda_call *call, const struct square_sums *op)
{
    if (op->count > 0)
        launch_kernel(call, (unsigned)((op->count + SQUARE_SUM_BLOCK - 1) / SQUARE_SUM_BLOCK), THREADS, 0,
                      are_aligned(op->x) ? sum_block<true> : sum_block<false>, *op);
}
