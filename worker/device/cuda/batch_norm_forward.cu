/* SPDX-License-Identifier: Apache-2.0
 *
 * x is read twice: for its statistics and to be normalised. Threads have mean and
 * squares about it of some rows, and join those of their next rows to them (Chan et
 * al. 1983); what many have is put together about the mean of all, in order.
 */
#include "worker/device/cuda/batch_norm.cuh"

struct moments_job {
    struct batch_norm_forward op;
    struct column_stripes stripes;
    float *partial; /* [2,groups,c]: means of groups, their squares */
};

/* A thread's moments of its columns. */
template <int LENGTH> struct moments {
    float count, mean[LENGTH], squares[LENGTH];
};

/* COUNT more rows. */
template <int COUNT, typename Stored, int LENGTH>
static __device__ inline void join(moments<LENGTH> *all, const element_pack<Stored> x[COUNT])
{
    const float count = all->count + COUNT, share = COUNT / count, weight = all->count * share;
#pragma unroll
    for (int i = 0; i < LENGTH; i++) {
        float mean = 0, squares = 0;
#pragma unroll
        for (int r = 0; r < COUNT; r++)
            mean += widen(x[r].at[i]);
        mean *= 1.0f / COUNT;
#pragma unroll
        for (int r = 0; r < COUNT; r++) {
            const float distance = widen(x[r].at[i]) - mean;
            squares = fmaf(distance, distance, squares);
        }
        const float distance = mean - all->mean[i];
        all->mean[i] = fmaf(distance, share, all->mean[i]);
        all->squares[i] += fmaf(distance * weight, distance, squares);
    }
    all->count = count;
}

/* Rows of `from`, which is that of the first, and of every line behind it. */
template <int COUNT, bool ALIGNED, typename Stored, int LENGTH>
static __device__ inline void read_rows(const struct moments_job &job, const struct stripe_place &at, int64_t row,
                                        moments<LENGTH> *all)
{
    element_pack<Stored> x[COUNT];
    const Stored *from = values<Stored>(job.op.x).start + row * job.op.c + at.column;
#pragma unroll
    for (int r = 0; r < COUNT; r++)
        x[r] = read_pack<ALIGNED>(from + r * job.stripes.lines * job.op.c, at.left);
    join<COUNT, Stored, LENGTH>(all, x);
}

/* The lines' moments become the block's, column by column. `means` and `squares` are [lines,width]; of the lines the first have a row
 * more. */
static __device__ inline void join_lines(const struct moments_job &job, int64_t first, int width, int rows,
                                         const float *means, const float *squares)
{
    const int lines = job.stripes.lines, each = rows / lines, more = rows % lines;
    for (int i = (int)threadIdx.x; i < width && first + i < job.op.c; i += STRIPE_THREADS) {
        float mean = 0, all = 0;
        for (int line = 0; line < lines; line++)
            mean = fmaf((float)(each + (line < more)), means[line * width + i], mean);
        mean /= (float)rows;
        for (int line = 0; line < lines; line++) {
            const float distance = means[line * width + i] - mean;
            const float weight = (float)(each + (line < more)); /* first: of no rows it is no infinite square */
            all += fmaf(distance * weight, distance, squares[line * width + i]);
        }
        job.partial[blockIdx.y * job.op.c + first + i] = mean;
        job.partial[(job.stripes.groups + blockIdx.y) * job.op.c + first + i] = all;
    }
}

template <typename Stored, bool ALIGNED>
static __global__ void __launch_bounds__(STRIPE_THREADS, ALIGNED ? 4 : 1) each_group(struct moments_job job)
{
    const int length = element_pack<Stored>::LENGTH;
    __shared__ float means[STRIPE_THREADS * length], squares[STRIPE_THREADS * length];
    const struct stripe_place at = stripe_place_of<Stored>(job.stripes);
    const int64_t lines = job.stripes.lines;
    moments<length> own = {};
    int64_t row = at.row;
    if (at.left > 0) {
        for (; row + (BATCH_NORM_AT_ONCE - 1) * lines < at.end; row += BATCH_NORM_AT_ONCE * lines)
            read_rows<BATCH_NORM_AT_ONCE, ALIGNED, Stored, length>(job, at, row, &own);
        for (; row < at.end; row += lines)
            read_rows<1, ALIGNED, Stored, length>(job, at, row, &own);
    }
#pragma unroll
    for (int i = 0; i < length; i++) {
        means[threadIdx.x * length + i] = own.mean[i];
        squares[threadIdx.x * length + i] = own.squares[i];
    }
    __syncthreads();
    const int width = job.stripes.lanes * length;
    join_lines(job, (int64_t)blockIdx.x * width, width, (int)(at.end - (at.row - at.line)), means, squares);
}

static __device__ inline float rows_of_group(const struct column_stripes &stripes, int64_t group)
{
    const int64_t left = stripes.rows - group * stripes.group_rows;
    return (float)(left < stripes.group_rows ? left : stripes.group_rows);
}

/* The groups' moments become those of all rows. */
static __global__ void __launch_bounds__(BATCH_NORM_FINISH_LINES *BATCH_NORM_FINISH_COLUMNS) each_column(struct moments_job job)
{
    __shared__ float places[BATCH_NORM_FINISH_LINES][BATCH_NORM_FINISH_COLUMNS];
    const struct batch_norm_forward &op = job.op;
    const int64_t column = (int64_t)blockIdx.x * BATCH_NORM_FINISH_COLUMNS + threadIdx.x, groups = job.stripes.groups;
    const int64_t end = column < op.c ? groups : 0;
    const float rows = (float)op.rows;
    float sum = 0, squares = 0;
#pragma unroll 4
    for (int64_t group = threadIdx.y; group < end; group += BATCH_NORM_FINISH_LINES)
        sum = fmaf(rows_of_group(job.stripes, group), job.partial[group * op.c + column], sum);
    const float mean = op.rows > 0 ? batch_norm_lines_sum(places, sum) / rows : 0;
#pragma unroll 4
    for (int64_t group = threadIdx.y; group < end; group += BATCH_NORM_FINISH_LINES) {
        const float distance = job.partial[group * op.c + column] - mean;
        squares += fmaf(distance * rows_of_group(job.stripes, group), distance,
                        job.partial[(groups + group) * op.c + column]);
    }
    squares = batch_norm_lines_sum(places, squares);
    if (threadIdx.y > 0 || column >= op.c)
        return;
    const float variance = op.rows > 0 ? squares / rows : 0;
    op.mean[column] = mean;
    op.rstd[column] = 1.0f / sqrtf(variance + BATCH_NORM_EPSILON);
    op.variance[column] = op.rows > 1 ? squares / (rows - 1) : variance;
}

template <typename Stored> static void launch(const struct cuda_call *call, const struct batch_norm_forward *op)
{
    const bool aligned = are_aligned(op->x) && op->c % element_pack<Stored>::LENGTH == 0;
    struct moments_job job = {*op, batch_norm_sum_stripes<Stored>(op->rows, op->c), NULL};
    job.partial = batch_norm_partial(call, job.stripes, op->workspace);
    if (job.stripes.groups > 0)
        launch_kernel(call, dim3(job.stripes.stripes, job.stripes.groups), STRIPE_THREADS, 0,
                      aligned ? each_group<Stored, true> : each_group<Stored, false>, job);
    batch_norm_finish(call, op->c, each_column, job);
}

void cuda_batch_norm_forward(const struct cuda_call *call, const struct batch_norm_forward *op)
{
    struct batch_norm_line line = batch_norm_line_of(*op);
    BY_STORED(call, launch, call, op);
    line.mean = op->mean;
    line.rstd = op->rstd;
    batch_norm_line(call, &line);
}
