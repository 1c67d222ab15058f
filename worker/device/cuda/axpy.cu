/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/each.cuh"

static __global__ void each_element(struct axpy op)
{
    EACH(i, op.count);
    op.y[i] += op.factor * op.x[i];
}

void cuda_axpy(const struct cuda_call *call, const struct axpy *op)
{
    launch_each(call, op->count, each_element, *op);
}
