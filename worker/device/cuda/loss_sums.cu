/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/warp.cuh"

#define THREADS 1024 /* of the only block */

struct loss_rows {
    const double *rows;
    int64_t count, width;
    struct loss_sums *sums;
};

/* Thread t adds rows t, t + THREADS, …; then warps, then the block. */
static __global__ void sum_rows(struct loss_rows job)
{
    __shared__ double losses[THREADS / WARP], corrects[THREADS / WARP];
    double loss = 0, correct = 0; /* counts below 2^53 are exact */
#pragma unroll 4
    for (int64_t row = threadIdx.x; row < job.count; row += THREADS) {
        loss += job.rows[row * job.width];
        correct += job.width > 1 ? job.rows[row * job.width + 1] : 0;
    }
    loss = warp_sum(loss);
    correct = warp_sum(correct);
    if (threadIdx.x % WARP == 0) {
        losses[threadIdx.x / WARP] = loss;
        corrects[threadIdx.x / WARP] = correct;
    }
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int warp = 1; warp < THREADS / WARP; warp++) {
        loss += losses[warp];
        correct += corrects[warp];
    }
    job.sums->loss = loss;
    job.sums->correct = (int64_t)correct;
    job.sums->count = job.count;
}

void cuda_loss_sums(const struct cuda_call *call, const double *rows, int64_t count, bool correct,
                    struct loss_sums *sums)
{
    struct loss_rows job = {rows, count, correct ? 2 : 1, sums};
    launch_kernel(call, 1, THREADS, 0, sum_rows, job);
}
