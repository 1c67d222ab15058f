/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/bfloat16.h"
#include "worker/device/cuda/each.cuh"

static __global__ void each_element(struct round_bfloat16 op)
{
    EACH(i, op.count);
    op.y[i] = bfloat16_round(op.x[i]);
}

void cuda_round_bfloat16(const struct cuda_call *call, const struct round_bfloat16 *op)
{
    launch_each(call, op->count, each_element, *op);
}
