/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/column_sums.cuh"

static __device__ float normal(const struct layer_norm_backward &op, int64_t row, int64_t i)
{
    return (op.x[row * op.c + i] - op.mean[row]) * op.rstd[row];
}

static __global__ void each_row(struct layer_norm_backward op)
{
    EACH_ROW(row, lane, op.rows);
    const int c = (int)op.c;
    const float *dy = op.dy + row * op.c;
    float sum = 0, dot = 0;
    for (int i = lane; i < c; i += WARP) {
        float g = dy[i] * op.weight[i];
        sum += g;
        dot += g * normal(op, row, i);
    }
    const float average = warp_sum(sum) / (float)c, slope = warp_sum(dot) / (float)c;
    for (int i = lane; i < c; i += WARP)
        op.dx[row * op.c + i] = (dy[i] * op.weight[i] - average - normal(op, row, i) * slope) * op.rstd[row];
}

struct weight_element {
    struct layer_norm_backward op;
    __device__ float operator()(int64_t row, int64_t column) const
    {
        return op.dy[row * op.c + column] * normal(op, row, column);
    }
};

/* The sums read x and dy before dx, which may lie where dy does, is written. */
void cuda_layer_norm_backward(const struct cuda_call *call, const struct layer_norm_backward *op)
{
    struct weight_element element = {*op};
    launch_column_sums(call, op->rows, op->c, op->dweight, op->accumulate, element);
    cuda_column_sums(call, op->dy, op->rows, op->c, op->dbias, op->accumulate);
    launch_rows(call, op->rows, each_row, *op);
}
