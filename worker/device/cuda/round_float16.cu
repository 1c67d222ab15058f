/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/stored.cuh"
#include "worker/device/float16.h"

template <typename Stored> static __global__ void each_element(struct round_float16 op)
{
    EACH(i, op.count);
    values<Stored>(op.y).put(i, float16_round(op.x[i]));
}

void cuda_round_float16(const struct cuda_call *call, const struct round_float16 *op)
{
    launch_each(call, op->count, KERNEL_FOR(call, each_element), *op);
}
