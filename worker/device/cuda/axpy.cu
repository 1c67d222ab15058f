/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/stored.cuh"

struct add_scaled {
    float factor;
    __device__ float operator()(float x, float y, int64_t) const
    {
        return y + factor * x;
    }
};

void cuda_axpy(const struct cuda_call *call, const struct axpy *op)
{
    launch_map(call, op->count, op->x, op->y, op->y, add_scaled{op->factor});
}
