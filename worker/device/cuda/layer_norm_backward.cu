/* SPDX-License-Identifier: Apache-2.0
 *
 * One pass over x and dy: a block has a group of rows, its threads keep what their
 * columns add to the gradients of weight and bias, and the groups' sums are then
 * added in order. Groups depend on the shape alone.
 */
#include "worker/device/cuda/column_sums.cuh"
#include "worker/device/cuda/row_block.cuh"

#define ROWS 2       /* that a block takes at once */
#define GROUP_ROWS 8 /* that a group has at least */
/* Groups are as many as blocks run at once on an H200, lest the last ones have it to themselves: registers leave room for 20 warps on
 * each of 132 multiprocessors, which are six blocks of 96 threads, as rows of 768 have them. */
#define MULTIPROCESSORS 132
#define WARPS 20
#define THREADS_MAX 320
#define REGISTERS_FOR 2 /* blocks per multiprocessor for which registers suffice */

struct norm_job {
    struct layer_norm_backward op;
    int64_t groups;
    float *partial; /* [2,groups,c] */
};

/* A thread's values of its group. */
template <typename Stored> struct norm_columns {
    static const int LENGTH = element_pack<Stored>::LENGTH;
    int column, left; /* the first, and how many there are from there on */
    float weight[LENGTH], dweight[LENGTH], dbias[LENGTH];
};

/* COUNT rows from `row` on. Where dx lies in the place of dy each thread has read what it writes. */
template <int COUNT, bool ALIGNED, bool ADD, typename Stored>
static __device__ inline void go_back(const struct layer_norm_backward &op, int64_t row, norm_columns<Stored> *own,
                                      float (*places)[2 * ROWS])
{
    const int length = element_pack<Stored>::LENGTH;
    const int64_t place = row * op.c + own->column;
    Stored *to = values<Stored>(op.dx).start + place;
    element_pack<Stored> x[COUNT] = {}, dy[COUNT] = {}, there[COUNT] = {};
    float mean[COUNT], rstd[COUNT], sums[2 * ROWS] = {};
    if (own->left > 0)
#pragma unroll
        for (int r = 0; r < COUNT; r++) {
            x[r] = read_pack<ALIGNED>(values<Stored>(op.x).start + place + r * op.c, own->left);
            dy[r] = read_pack<ALIGNED>(values<Stored>(op.dy).start + place + r * op.c, own->left);
            if (ADD)
                there[r] = read_pack<ALIGNED>(to + r * op.c, own->left);
        }
#pragma unroll
    for (int r = 0; r < COUNT; r++) {
        mean[r] = op.mean[row + r];
        rstd[r] = op.rstd[row + r];
#pragma unroll
        for (int i = 0; i < length; i++) {
            const float back = widen(dy[r].at[i]), g = back * own->weight[i];
            const float normal = (widen(x[r].at[i]) - mean[r]) * rstd[r];
            sums[2 * r] += g;
            sums[2 * r + 1] = fmaf(g, normal, sums[2 * r + 1]);
            own->dweight[i] = fmaf(back, normal, own->dweight[i]);
            own->dbias[i] += back;
        }
    }
    block_sums<2 * ROWS>(sums, places);
    if (own->left <= 0)
        return;
#pragma unroll
    for (int r = 0; r < COUNT; r++) {
        const float average = sums[2 * r] / (float)op.c, slope = sums[2 * r + 1] / (float)op.c;
        element_pack<Stored> dx;
#pragma unroll
        for (int i = 0; i < length; i++) {
            const float normal = (widen(x[r].at[i]) - mean[r]) * rstd[r];
            const float slid = fmaf(-normal, slope, widen(dy[r].at[i]) * own->weight[i] - average);
            narrow(slid * rstd[r], &dx.at[i]);
            if (ADD) /* as it would have been stored: the bits of two launches, which stages of a Pipeline make of it */
                narrow(widen(there[r].at[i]) + widen(dx.at[i]), &dx.at[i]);
        }
        write_pack<ALIGNED>(to + r * op.c, dx, own->left);
    }
}

template <typename Stored, bool ALIGNED, bool ADD>
static __global__ void __launch_bounds__(THREADS_MAX, ALIGNED ? REGISTERS_FOR : 1) each_group(struct norm_job job)
{
    const int length = element_pack<Stored>::LENGTH;
    __shared__ float places[2][THREADS_MAX / WARP][2 * ROWS];
    const struct layer_norm_backward &op = job.op;
    const int64_t first = op.rows * blockIdx.x / job.groups, end = op.rows * (blockIdx.x + 1) / job.groups;
    norm_columns<Stored> own = {};
    own.column = (int)threadIdx.x * length;
    own.left = (int)op.c - own.column;
    if (own.left > 0)
        read_numbers<ALIGNED, length>(op.weight + own.column, own.left, own.weight);
    int64_t row = first;
    int turn = 0;
    for (; row + ROWS <= end; row += ROWS, turn ^= 1)
        go_back<ROWS, ALIGNED, ADD>(op, row, &own, places[turn]);
    for (; row < end; row++, turn ^= 1)
        go_back<1, ALIGNED, ADD>(op, row, &own, places[turn]);
    float *to = job.partial + blockIdx.x * op.c + own.column;
#pragma unroll
    for (int i = 0; i < length; i++)
        if (i < own.left) {
            to[i] = own.dweight[i];
            to[job.groups * op.c + i] = own.dbias[i];
        }
}

/* ---------------------------------------------------------------- rows that are too wide for a block's registers */

template <typename Stored>
static __device__ float normal(const struct layer_norm_backward &op, int64_t row, int64_t i)
{
    return (values<Stored>(op.x)[row * op.c + i] - op.mean[row]) * op.rstd[row];
}

template <typename Stored> static __global__ void each_wide_row(struct layer_norm_backward op)
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
    for (int i = lane; i < c; i += WARP) {
        Stored own;
        narrow((dy[i] * op.weight[i] - average - normal<Stored>(op, row, i) * slope) * op.rstd[row], &own);
        dx.put(i, op.add ? dx[i] + widen(own) : widen(own));
    }
}

template <typename Stored> struct weight_element {
    struct layer_norm_backward op;
    __device__ float operator()(int64_t row, int64_t column) const
    {
        return values<Stored>(op.dy)[row * op.c + column] * normal<Stored>(op, row, column);
    }
};

/* The sums read x and dy before dx, which may lie where dy does, is written. */
template <typename Stored> static void launch_wide(const struct cuda_call *call, const struct layer_norm_backward *op)
{
    struct weight_element<Stored> element = {*op};
    launch_column_sums(call, op->rows, op->c, op->dweight, op->accumulate, element);
    cuda_column_sums(call, op->dy, op->rows, op->c, op->c, op->dbias, op->accumulate);
    launch_rows(call, op->rows, each_wide_row<Stored>, *op);
}

/* ---------------------------------------------------------------- launches */

static int64_t groups_for(int64_t rows, int64_t c, int64_t threads)
{
    const int64_t at_once = MULTIPROCESSORS * (WARPS / ((threads + WARP - 1) / WARP));
    int64_t groups = rows / GROUP_ROWS;
    groups = groups > at_once ? at_once : groups;
    while (groups * 2 * c > CUDA_SCRATCH_FLOATS)
        groups /= 2;
    return groups > 1 ? groups : 1;
}

template <typename Stored> static void (*kernel_for(bool aligned, bool add))(struct norm_job)
{
    if (add)
        return aligned ? each_group<Stored, true, true> : each_group<Stored, false, true>;
    return aligned ? each_group<Stored, true, false> : each_group<Stored, false, false>;
}

template <typename Stored> static void launch(const struct cuda_call *call, const struct layer_norm_backward *op)
{
    const int64_t threads = row_threads<Stored>(op->c);
    const struct norm_job job = {*op, groups_for(op->rows, op->c, threads), call->scratch};
    const bool aligned = are_aligned(op->x, op->dy, op->dx, op->weight) && op->c % element_pack<Stored>::LENGTH == 0;
    if (threads > THREADS_MAX) {
        launch_wide<Stored>(call, op);
        return;
    }
    launch_kernel(call, (unsigned)job.groups, (unsigned)threads, 0, kernel_for<Stored>(aligned, op->add), job);
    launch_column_finish(call, {op->c, job.groups, job.partial, op->dweight, op->dbias, op->accumulate});
}

void cuda_layer_norm_backward(const struct cuda_call *call, const struct layer_norm_backward *op)
{
    BY_STORED(call, launch, call, op);
}
