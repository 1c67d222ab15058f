/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/stored.cuh"

template <typename Stored> static __global__ void each_element(struct round_bfloat16 op)
{
    EACH(i, op.count);
    values<Stored>(op.y).put(i, bfloat16_round(op.x[i]));
}

void cuda_round_bfloat16(const struct cuda_call *call, const struct round_bfloat16 *op)
{
    launch_each(call, op->count, KERNEL_FOR(call, each_element), *op);
}
