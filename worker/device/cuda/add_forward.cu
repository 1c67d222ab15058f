/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/each.cuh"

static __global__ void each_element(struct add_forward op)
{
    EACH(i, op.count);
    const float y = op.a[i] + op.b[i];
    op.y[i] = op.activation == ACTIVATION_RELU && y <= 0 ? 0 : y;
}

void cuda_add_forward(const struct cuda_call *call, const struct add_forward *op)
{
    launch_each(call, op->count, each_element, *op);
}
