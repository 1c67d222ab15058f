/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/stored.cuh"

template <typename Stored> static __global__ void each_value(struct copy_columns op)
{
    EACH(i, op.rows * op.columns);
    const int64_t row = i / op.columns, column = i % op.columns;
    values<Stored>(op.to).put(row * op.to_row + column, values<Stored>(op.from)[row * op.from_row + column]);
}

void cuda_copy_columns(const struct cuda_call *call, const struct copy_columns *op)
{
    launch_each(call, op->rows * op->columns, KERNEL_FOR(call, each_value), *op);
}
