/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/each.cuh"

static __global__ void each_element(struct relu_forward op)
{
    EACH(i, op.count);
    op.y[i] = op.x[i] <= 0 ? 0 : op.x[i];
}

void cuda_relu_forward(const struct cuda_call *call, const struct relu_forward *op)
{
    launch_each(call, op->count, each_element, *op);
}
