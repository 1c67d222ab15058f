/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/stored.cuh"

#define EPSILON 1e-5f

template <typename Stored> static __global__ void each_element(struct batch_norm_inference op)
{
    EACH(i, op.rows * op.c);
    const int64_t column = i % op.c;
    const float slope = op.weight[column] * (1.0f / sqrtf(op.running_variance[column] + EPSILON));
    const float y = (values<Stored>(op.x)[i] - op.running_mean[column]) * slope + op.bias[column];
    values<Stored>(op.y).put(i, op.activation == ACTIVATION_RELU && y <= 0 ? 0 : y);
}

void cuda_batch_norm_inference(const struct cuda_call *call, const struct batch_norm_inference *op)
{
    launch_each(call, op->rows * op->c, KERNEL_FOR(call, each_element), *op);
}
