/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/stored.cuh"

struct pass_positive {
    __device__ float operator()(float y, float dy, int64_t) const
    {
        return y > 0 ? dy : 0;
    }
};

void cuda_relu_backward(const struct cuda_call *call, const struct relu_backward *op)
{
    launch_map(call, op->count, op->y, op->dy, op->dx, pass_positive());
}
