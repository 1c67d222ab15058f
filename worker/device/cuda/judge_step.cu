/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "worker/device/cuda/launch.cuh"
#include "worker/device/loss_scale.h"

#define THREADS 256
#define CHUNK 2048 /* sums that all threads fetch before one adds them */

/* Adds as the host does: in order, by one thread. Bits that say what is wrong are the same everywhere. */
static __global__ void judge(struct judge_step op, const volatile struct cuda_fault *fault)
{
    __shared__ double chunk[CHUNK];
    double total = 0;
    for (int64_t first = 0; first < op.blocks; first += CHUNK) {
        const int count = (int)min(op.blocks - first, (int64_t)CHUNK);
        __syncthreads();
        for (int i = threadIdx.x; i < count; i += THREADS)
            chunk[i] = op.block_sums[first + i];
        __syncthreads();
        for (int i = 0; i < count && threadIdx.x == 0; i++)
            total += chunk[i];
    }
    for (int64_t i = threadIdx.x; i < op.passes; i += THREADS)
        op.ret_sums[i] = op.sums[i];
    if (threadIdx.x > 0)
        return;
    bool finite = isfinite(total);
    for (int64_t i = 0; i < op.passes; i++)
        finite = finite && isfinite((float)op.sums[i].loss);
    struct step_values *values = op.values;
    const double norm = sqrt(total) / (double)values->loss_scale;
    values->gradient_scale = (op.limit > 0 && norm > op.limit ? (float)(op.limit / norm) : 1.0f) / values->loss_scale;
    values->refused = !finite || fault->kind != CUDA_FAULT_NONE;
    loss_scale_update(&values->loss_scale, &values->good_steps, values->refused);
    *op.ret_norm = norm;
}

void cuda_judge_step(const struct cuda_call *call, const struct judge_step *op)
{
    const volatile struct cuda_fault *fault = call->fault;
    launch_kernel(call, 1, THREADS, 0, judge, *op, fault);
}
