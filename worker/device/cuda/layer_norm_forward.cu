/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/row_block.cuh"

#define EPSILON 1e-5f
#define ROWS 4 /* of a block */

/* x becomes the sum, as it is stored. */
template <bool ALIGNED, typename Stored>
static __device__ inline void add_past(const struct layer_norm_forward &op, int64_t place, int rows, int left,
                                       element_pack<Stored> x[ROWS])
{
    element_pack<Stored> past[ROWS] = {};
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        if (r < rows && left > 0)
            past[r] = read_pack<ALIGNED>(values<Stored>(op.past).start + place + r * op.c, left);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int i = 0; i < past[r].LENGTH; i++)
            narrow(widen(x[r].at[i]) + widen(past[r].at[i]), &x[r].at[i]);
        if (r < rows && left > 0)
            write_pack<ALIGNED>(values<Stored>(op.sum).start + place + r * op.c, x[r], left);
    }
}

template <typename Stored, bool ALIGNED, bool SUM>
static __global__ void __launch_bounds__(ROW_THREADS_MAX) each_rows(struct layer_norm_forward op)
{
    typedef element_pack<Stored> pack;
    __shared__ float places[2][ROW_WARPS_MAX][ROWS];
    const int column = (int)threadIdx.x * pack::LENGTH, left = (int)op.c - column;
    const int64_t first = (int64_t)blockIdx.x * ROWS, place = first * op.c + column;
    const int rows = op.rows - first < ROWS ? (int)(op.rows - first) : ROWS;
    pack x[ROWS] = {};
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        if (r < rows && left > 0)
            x[r] = read_pack<ALIGNED>(values<Stored>(op.x).start + place + r * op.c, left);
    float mean[ROWS] = {}, rstd[ROWS] = {}, weight[pack::LENGTH] = {}, bias[pack::LENGTH] = {};
    if (left > 0) {
        read_numbers<ALIGNED, pack::LENGTH>(op.weight + column, left, weight);
        read_numbers<ALIGNED, pack::LENGTH>(op.bias + column, left, bias);
    }
    if (SUM)
        add_past<ALIGNED>(op, place, rows, left, x);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int i = 0; i < pack::LENGTH; i++)
            mean[r] += widen(x[r].at[i]);
    block_sums<ROWS>(mean, places[0]);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        mean[r] /= (float)op.c;
#pragma unroll
        for (int i = 0; i < pack::LENGTH; i++) {
            const float distance = widen(x[r].at[i]) - mean[r];
            rstd[r] += i < left ? distance * distance : 0;
        }
    }
    block_sums<ROWS>(rstd, places[1]);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        rstd[r] = 1.0f / sqrtf(rstd[r] / (float)op.c + EPSILON);
        if (r >= rows || left <= 0)
            continue;
#pragma unroll
        for (int i = 0; i < pack::LENGTH; i++)
            narrow(fmaf((widen(x[r].at[i]) - mean[r]) * rstd[r], weight[i], bias[i]), &x[r].at[i]);
        write_pack<ALIGNED>(values<Stored>(op.y).start + place + r * op.c, x[r], left);
        if (threadIdx.x == 0) {
            op.mean[first + r] = mean[r];
            op.rstd[first + r] = rstd[r];
        }
    }
}

/* A warp a row that is too wide for a block's registers. */
template <typename Stored> static __global__ void each_wide_row(struct layer_norm_forward op)
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

static void launch_wide(const struct cuda_call *call, const struct layer_norm_forward *op)
{
    const struct add_forward add = {op->rows * op->c, op->x, op->past, op->sum, ACTIVATION_NONE};
    struct layer_norm_forward norm = *op;
    if (op->past) {
        cuda_add_forward(call, &add);
        norm.x = op->sum;
    }
    launch_rows(call, op->rows, KERNEL_FOR(call, each_wide_row), norm);
}

template <typename Stored> static void (*kernel_for(bool aligned, bool sum))(struct layer_norm_forward)
{
    if (sum)
        return aligned ? each_rows<Stored, true, true> : each_rows<Stored, false, true>;
    return aligned ? each_rows<Stored, true, false> : each_rows<Stored, false, false>;
}

template <typename Stored> static void launch(const struct cuda_call *call, const struct layer_norm_forward *op)
{
    const int64_t threads = row_threads<Stored>(op->c);
    const bool aligned = are_aligned(op->x, op->y, op->weight, op->bias, op->past, op->sum) &&
                         op->c % element_pack<Stored>::LENGTH == 0;
    if (threads > ROW_THREADS_MAX)
        launch_wide(call, op);
    else if (op->rows > 0)
        launch_kernel(call, (unsigned)((op->rows + ROWS - 1) / ROWS), (unsigned)threads, 0,
                      kernel_for<Stored>(aligned, op->past != NULL), *op);
}

void cuda_layer_norm_forward(const struct cuda_call *call, const struct layer_norm_forward *op)
{
    BY_STORED(call, launch, call, op);
}
