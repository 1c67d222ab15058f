/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/each.cuh"

static __global__ void each_element(struct tanh_backward op)
{
    EACH(i, op.count);
    op.dx[i] = op.dy[i] * (1.0f - op.y[i] * op.y[i]);
}

void cuda_tanh_backward(const struct cuda_call *call, const struct tanh_backward *op)
{
    launch_each(call, op->count, each_element, *op);
}
