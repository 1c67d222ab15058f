/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/column_sums.cuh"
#include "worker/device/cuda/stored.cuh"

template <typename Stored> struct weight_element {
    struct batch_norm_backward op;
    __device__ float operator()(int64_t row, int64_t column) const
    {
        const int64_t i = row * op.c + column;
        return values<Stored>(op.dy)[i] * (values<Stored>(op.x)[i] - op.mean[column]) * op.rstd[column];
    }
};

/* The sums of this batch alone, in the workspace: dot[C], then sum[C]. */
template <typename Stored> static __global__ void each_element(struct batch_norm_backward op)
{
    EACH(i, op.rows * op.c);
    const int64_t column = i % op.c;
    const float normal = (values<Stored>(op.x)[i] - op.mean[column]) * op.rstd[column], rows = (float)op.rows;
    const float dot = op.workspace[column] / rows, sum = op.workspace[op.c + column] / rows;
    const float distance = values<Stored>(op.dy)[i] - sum - normal * dot;
    values<Stored>(op.dx).put(i, distance * (op.weight[column] * op.rstd[column]));
}

static __global__ void each_column(struct batch_norm_backward op)
{
    EACH(i, op.c);
    const float dot = op.workspace[i], sum = op.workspace[op.c + i];
    op.dweight[i] = op.accumulate ? op.dweight[i] + dot : dot;
    op.dbias[i] = op.accumulate ? op.dbias[i] + sum : sum;
    const float part = op.rows > 0 ? op.share * op.momentum : 0;
    const float mean_step = part * (op.running_mean[i] - op.mean[i]);
    const float variance_step = part * (op.running_variance[i] - op.variance[i]);
    op.mean_step[i] = op.accumulate ? op.mean_step[i] + mean_step : mean_step;
    op.variance_step[i] = op.accumulate ? op.variance_step[i] + variance_step : variance_step;
}

template <typename Stored> static void launch(const struct cuda_call *call, const struct batch_norm_backward *op)
{
    struct weight_element<Stored> element = {*op};
    launch_column_sums(call, op->rows, op->c, op->workspace, false, element);
    cuda_column_sums(call, op->dy, op->rows, op->c, op->c, op->workspace + op->c, false);
    launch_each(call, op->c, each_column, *op);
    if (op->dx)
        launch_each(call, op->rows * op->c, each_element<Stored>, *op);
}

void cuda_batch_norm_backward(const struct cuda_call *call, const struct batch_norm_backward *op)
{
    BY_STORED(call, launch, call, op);
}
