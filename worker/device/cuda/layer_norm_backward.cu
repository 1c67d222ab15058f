/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/column_sums.cuh"
#include "worker/device/cuda/stored.cuh"

template <typename Stored>
static __device__ float normal(const struct layer_norm_backward &op, int64_t row, int64_t i)
{
    return (values<Stored>(op.x)[row * op.c + i] - op.mean[row]) * op.rstd[row];
}

template <typename Stored> static __global__ void each_row(struct layer_norm_backward op)
{
    EACH_ROW(row, lane, op.rows);
    const int c = (int)op.c;
    const values<Stored> dy = values<Stored>(op.dy) + row * op.c, dx = values<Stored>(op.dx) + row * op.c;
    float sum = 0, dot = 0;
    for (int i = lane; i < c; i += WARP) {
        float g = dy[i] * op.weight[i];
        sum += g;
        dot += g * normal<Stored>(op, row, i);
    }
    const float average = warp_sum(sum) / (float)c, slope = warp_sum(dot) / (float)c;
    for (int i = lane; i < c; i += WARP)
        dx.put(i, (dy[i] * op.weight[i] - average - normal<Stored>(op, row, i) * slope) * op.rstd[row]);
}

template <typename Stored> struct weight_element {
    struct layer_norm_backward op;
    __device__ float operator()(int64_t row, int64_t column) const
    {
        return values<Stored>(op.dy)[row * op.c + column] * normal<Stored>(op, row, column);
    }
};

/* The sums read x and dy before dx, which may lie where dy does, is written. */
template <typename Stored> static void launch(const struct cuda_call *call, const struct layer_norm_backward *op)
{
    struct weight_element<Stored> element = {*op};
    launch_column_sums(call, op->rows, op->c, op->dweight, op->accumulate, element);
    cuda_column_sums(call, op->dy, op->rows, op->c, op->c, op->dbias, op->accumulate);
    launch_rows(call, op->rows, each_row<Stored>, *op);
}

void cuda_layer_norm_backward(const struct cuda_call *call, const struct layer_norm_backward *op)
{
    BY_STORED(call, launch, call, op);
}
