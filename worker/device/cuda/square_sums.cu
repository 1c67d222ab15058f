/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/warp.cuh"

#define THREADS 256

/* One block of threads a block of elements. */
static __global__ void sum_block(struct square_sums op)
{
    __shared__ double sums[THREADS / WARP];
    const int64_t first = (int64_t)blockIdx.x * SQUARE_SUM_BLOCK;
    const int64_t end = min(first + SQUARE_SUM_BLOCK, op.count);
    double sum = 0;
    for (int64_t i = first + threadIdx.x; i < end; i += THREADS)
        sum += (double)op.x[i] * (double)op.x[i];
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
        launch_kernel(call, (unsigned)((op->count + SQUARE_SUM_BLOCK - 1) / SQUARE_SUM_BLOCK), THREADS, 0, sum_block,
                      *op);
}
