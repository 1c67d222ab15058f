/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/stored.cuh"

struct add {
    bool relu;
    __device__ float operator()(float a, float b, int64_t) const
    {
        const float y = a + b;
        return relu && y <= 0 ? 0 : y;
    }
};

void cuda_add_forward(const struct cuda_call *call, const struct add_forward *op)
{
    launch_map(call, op->count, op->a, op->b, op->y, add{op->activation == ACTIVATION_RELU});
}
