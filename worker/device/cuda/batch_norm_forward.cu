/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/column_sums.cuh"
#include "worker/device/cuda/stored.cuh"

#define EPSILON 1e-5f

template <typename Stored> struct value {
    values<Stored> x;
    int64_t c;
    __device__ float operator()(int64_t row, int64_t column) const
    {
        return x[row * c + column];
    }
};

/* About the mean, of which `sums` holds rows times as much. */
template <typename Stored> struct squared_distance {
    values<Stored> x;
    const float *sums;
    int64_t rows, c;
    __device__ float operator()(int64_t row, int64_t column) const
    {
        const float distance = x[row * c + column] - sums[column] / (float)rows;
        return distance * distance;
    }
};

/* mean holds sums, rstd squares. */
static __global__ void each_column(struct batch_norm_forward op)
{
    EACH(i, op.c);
    const float rows = (float)op.rows, squares = op.rstd[i];
    const float variance = op.rows > 0 ? squares / rows : 0;
    op.mean[i] = op.rows > 0 ? op.mean[i] / rows : 0;
    op.rstd[i] = 1.0f / sqrtf(variance + EPSILON);
    op.variance[i] = op.rows > 1 ? squares / (rows - 1) : variance;
}

template <typename Stored> static __global__ void each_element(struct batch_norm_forward op)
{
    EACH(i, op.rows * op.c);
    const int64_t column = i % op.c;
    const float y = (values<Stored>(op.x)[i] - op.mean[column]) * (op.weight[column] * op.rstd[column]) + op.bias[column];
    values<Stored>(op.y).put(i, op.activation == ACTIVATION_RELU && y <= 0 ? 0 : y);
}

template <typename Stored> static void launch(const struct cuda_call *call, const struct batch_norm_forward *op)
{
    const values<Stored> x(op->x);
    struct value<Stored> value = {x, op->c};
    struct squared_distance<Stored> distance = {x, op->mean, op->rows, op->c};
    launch_column_sums(call, op->rows, op->c, op->mean, false, value);
    launch_column_sums(call, op->rows, op->c, op->rstd, false, distance);
    launch_each(call, op->c, each_column, *op);
    launch_each(call, op->rows * op->c, each_element<Stored>, *op);
}

void cuda_batch_norm_forward(const struct cuda_call *call, const struct batch_norm_forward *op)
{
    BY_STORED(call, launch, call, op);
}
