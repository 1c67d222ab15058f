/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/stored.cuh"

struct slope {
    __device__ float operator()(float x, float dy, int64_t) const
    {
        float square = x * x, t = tanhf(0.7978845608f * (x + 0.044715f * x * square));
        float inside = 0.7978845608f * (1.0f + 3.0f * 0.044715f * square);
        return dy * (0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * inside);
    }
};

void cuda_gelu_backward(const struct cuda_call *call, const struct gelu_backward *op)
{
    launch_map(call, op->count, op->x, op->dy, op->dx, slope());
}
