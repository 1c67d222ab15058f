/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/stored.cuh"

struct rectify {
    __device__ float operator()(float x, float, int64_t) const
    {
        return x <= 0 ? 0 : x;
    }
};

void cuda_relu_forward(const struct cuda_call *call, const struct relu_forward *op)
{
    launch_map(call, op->count, op->x, NULL, op->y, rectify());
}
