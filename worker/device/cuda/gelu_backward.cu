/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/gelu.cuh"
#include "worker/device/cuda/stored.cuh"

struct slope {
    __device__ float operator()(float x, float dy, int64_t) const
    {
        return dy * gelu_slope(x);
    }
};

void cuda_gelu_backward(const struct cuda_call *call, const struct gelu_backward *op)
{
    launch_map(call, op->count, op->x, op->dy, op->dx, slope());
}
