/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/each.cuh"

static __global__ void each_element(struct scale op)
{
    EACH(i, op.count);
    op.x[i] *= op.factor;
}

void cuda_scale(const struct cuda_call *call, const struct scale *op)
{
    launch_each(call, op->count, each_element, *op);
}
