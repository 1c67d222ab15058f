/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/each.cuh"

static __global__ void each_element(struct sgd_update op)
{
    EACH(i, op.count);
    if (op.values && op.values->refused)
        return;
    const float scale = op.values ? op.values->gradient_scale : op.gradient_scale;
    const float rate = op.values ? op.values->factors.rate : op.rate;
    float step = op.gradients[i] * scale + op.weight_decay * op.parameters[i];
    if (op.velocity)
        step = op.velocity[i] = op.momentum * op.velocity[i] + step;
    op.parameters[i] -= rate * step;
}

void cuda_sgd_update(const struct cuda_call *call, const struct sgd_update *op)
{
    launch_each(call, op->count, each_element, *op);
}
