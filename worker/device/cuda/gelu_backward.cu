/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/each.cuh"

static __global__ void each_element(struct gelu_backward op)
{
    EACH(i, op.count);
    float x = op.x[i], square = x * x;
    float t = tanhf(0.7978845608f * (x + 0.044715f * x * square));
    float inside = 0.7978845608f * (1.0f + 3.0f * 0.044715f * square);
    op.dx[i] = op.dy[i] * (0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * inside);
}

void cuda_gelu_backward(const struct cuda_call *call, const struct gelu_backward *op)
{
    launch_each(call, op->count, each_element, *op);
}
