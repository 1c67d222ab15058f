/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/each.cuh"

static __global__ void each_element(struct gelu_forward op)
{
    EACH(i, op.count);
    float x = op.x[i], inside = 0.7978845608f * (x + 0.044715f * x * x * x); /* sqrt(2 / pi) */
    op.y[i] = 0.5f * x * (1.0f + tanhf(inside));
}

void cuda_gelu_forward(const struct cuda_call *call, const struct gelu_forward *op)
{
    launch_each(call, op->count, each_element, *op);
}
