/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/each.cuh"

static __global__ void each_element(struct tanh_forward op)
{
    EACH(i, op.count);
    op.y[i] = tanhf(op.x[i]);
}

void cuda_tanh_forward(const struct cuda_call *call, const struct tanh_forward *op)
{
    launch_each(call, op->count, each_element, *op);
}
