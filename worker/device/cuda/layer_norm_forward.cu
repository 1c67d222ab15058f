/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/stored.cuh"
#include "worker/device/cuda/warp.cuh"

#define EPSILON 1e-5f

template <typename Stored> static __global__ void each_row(struct layer_norm_forward op)
{
    EACH_ROW(row, lane, op.rows);
    const int c = (int)op.c;
    const values<Stored> x = values<Stored>(op.x) + row * op.c, y = values<Stored>(op.y) + row * op.c;
    float sum = 0, squares = 0;
    for (int i = lane; i < c; i += WARP)
        sum += x[i];
    const float mean = warp_sum(sum) / (float)c;
    for (int i = lane; i < c; i += WARP)
        squares += (x[i] - mean) * (x[i] - mean);
    const float rstd = 1.0f / sqrtf(warp_sum(squares) / (float)c + EPSILON);
    for (int i = lane; i < c; i += WARP)
        y.put(i, (x[i] - mean) * rstd * op.weight[i] + op.bias[i]);
    if (lane == 0) {
        op.mean[row] = mean;
        op.rstd[row] = rstd;
    }
}

void cuda_layer_norm_forward(const struct cuda_call *call, const struct layer_norm_forward *op)
{
    launch_rows(call, op->rows, KERNEL_FOR(call, each_row), *op);
}
