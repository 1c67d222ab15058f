/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/stored.cuh"
#include "worker/device/cuda/warp.cuh"

template <typename Stored> static __global__ void each_row(struct mean_squared_error op)
{
    EACH_ROW(row, lane, op.rows);
    const float scale = op.values ? op.scale * op.values->loss_scale : op.scale;
    const float slope = 2.0f * scale / (float)op.width;
    double sum = 0;
    for (int64_t i = row * op.width + lane; i < (row + 1) * op.width; i += WARP) {
        float difference = values<Stored>(op.y)[i] - op.targets[i];
        sum += (double)difference * (double)difference;
        if (op.dy)
            values<Stored>(op.dy).put(i, slope * difference);
    }
    sum = warp_sum(sum);
    if (lane == 0)
        op.workspace[row] = sum / (double)op.width;
}

void cuda_mean_squared_error(const struct cuda_call *call, const struct mean_squared_error *op)
{
    launch_rows(call, op->rows, KERNEL_FOR(call, each_row), *op);
    cuda_loss_sums(call, op->workspace, op->rows, false, op->sums);
}
