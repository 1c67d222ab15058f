/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/each.cuh"

static __global__ void each_element(struct sgd_update op)
{
    EACH(i, op.count);
    float step = op.gradients[i] * op.gradient_scale + op.weight_decay * op.parameters[i];
    if (op.velocity)
        step = op.velocity[i] = op.momentum * op.velocity[i] + step;
    op.parameters[i] -= op.rate * step;
}

void cuda_sgd_update(const struct cuda_call *call, const struct sgd_update *op)
{
    launch_each(call, op->count, each_element, *op);
}
