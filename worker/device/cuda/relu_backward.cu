/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/each.cuh"

static __global__ void each_element(struct relu_backward op)
{
    EACH(i, op.count);
    op.dx[i] = op.y[i] > 0 ? op.dy[i] : 0;
}

void cuda_relu_backward(const struct cuda_call *call, const struct relu_backward *op)
{
    launch_each(call, op->count, each_element, *op);
}
