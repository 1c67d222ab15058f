/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/each.cuh"

static __global__ void each_element(struct fill op)
{
    EACH(i, op.count);
    op.x[i] = op.value;
}

void cuda_fill(const struct cuda_call *call, const struct fill *op)
{
    launch_each(call, op->count, each_element, *op);
}
