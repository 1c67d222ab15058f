/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/each.cuh"

static __global__ void each_element(struct statistics_update op)
{
    EACH(i, op.count);
    if (op.values && op.values->refused)
        return;
    op.statistics[i] -= op.steps[i];
}

void cuda_statistics_update(const struct cuda_call *call, const struct statistics_update *op)
{
    launch_each(call, op->count, each_element, *op);
}
