/* SPDX-License-Identifier: Apache-2.0
 *
 * x and dy are read twice: for the sums over their columns, and for dx. A rectifier
 * that stood behind is gone back through in the same two passes: its mask is worked
 * out from x in both, or read by the first, which leaves what it has masked.
 */
#include "worker/device/cuda/batch_norm.cuh"

/* The mask between dy and the gradient of the normalised values. */
enum mask { MASK_NONE, MASK_OWN, MASK_SUM, MASK_SUM_OF_TWO };

struct gradient_job {
    struct batch_norm_backward op;
    struct column_stripes stripes;
    float *partial; /* [2,groups,c]: sums of dy, and of dy (x - mean) */
};

/* Numbers of a thread's columns. */
template <int LENGTH> struct gradient_columns {
    float mean[LENGTH], slope[LENGTH], bias[LENGTH]; /* the last two where the mask is worked out */
};

template <enum mask MASK, bool ALIGNED, int LENGTH>
static __device__ inline gradient_columns<LENGTH> read_columns(const struct batch_norm_backward &op,
                                                               const struct stripe_place &at)
{
    gradient_columns<LENGTH> own;
    read_numbers<ALIGNED, LENGTH>(op.mean + at.column, at.left, own.mean);
    if (MASK == MASK_OWN) {
        float weight[LENGTH];
        read_numbers<ALIGNED, LENGTH>(op.weight + at.column, at.left, weight);
        read_numbers<ALIGNED, LENGTH>(op.rstd + at.column, at.left, own.slope);
        read_numbers<ALIGNED, LENGTH>(op.bias + at.column, at.left, own.bias);
#pragma unroll
        for (int i = 0; i < LENGTH; i++)
            own.slope[i] = weight[i] * own.slope[i];
    }
    return own;
}

/* dy, where the rectifier has let something pass: as it has stored it. */
template <typename Stored, int LENGTH>
static __device__ inline float mask_own(const gradient_columns<LENGTH> &own, int i, float x, float dy)
{
    return is_stored_positive<Stored>(batch_norm_of(x, own.mean[i], own.slope[i], own.bias[i])) ? dy : 0;
}

/* ---------------------------------------------------------------- sums */

/* COUNT rows from `row` on. */
template <int COUNT, enum mask MASK, bool ALIGNED, typename Stored, int LENGTH>
static __device__ inline void add_rows(const struct gradient_job &job, const struct stripe_place &at, int64_t row,
                                       const gradient_columns<LENGTH> &own, float sum[LENGTH], float dot[LENGTH])
{
    const struct batch_norm_backward &op = job.op;
    const int64_t step = job.stripes.lines * op.c, place = row * op.c + at.column;
    element_pack<Stored> x[COUNT], dy[COUNT], y[COUNT], others[COUNT];
#pragma unroll
    for (int r = 0; r < COUNT; r++) {
        x[r] = read_pack<ALIGNED>(values<Stored>(op.x).start + place + r * step, at.left);
        dy[r] = read_pack<ALIGNED>(values<Stored>(op.dy).start + place + r * step, at.left);
        if (MASK >= MASK_SUM)
            y[r] = read_pack<ALIGNED>(values<Stored>(op.relu_output).start + place + r * step, at.left);
        if (MASK == MASK_SUM_OF_TWO)
            others[r] = read_pack<ALIGNED>(values<Stored>(op.others).start + place + r * step, at.left);
    }
#pragma unroll
    for (int r = 0; r < COUNT; r++) {
#pragma unroll
        for (int i = 0; i < LENGTH; i++) {
            if (MASK == MASK_SUM_OF_TWO) /* as it would have been stored */
                narrow(widen(dy[r].at[i]) + widen(others[r].at[i]), &dy[r].at[i]);
            if (MASK >= MASK_SUM)
                dy[r].at[i] = widen(y[r].at[i]) > 0 ? dy[r].at[i] : Stored();
            float g = widen(dy[r].at[i]);
            if (MASK == MASK_OWN)
                g = mask_own<Stored>(own, i, widen(x[r].at[i]), g);
            sum[i] += g;
            dot[i] = fmaf(g, widen(x[r].at[i]) - own.mean[i], dot[i]);
        }
        if (MASK >= MASK_SUM)
            write_pack<ALIGNED>(values<Stored>(op.masked).start + place + r * step, dy[r], at.left);
    }
}

/* The lines of a block, added in order, column by column. */
static __device__ inline void add_lines(const struct gradient_job &job, int width, const float *lines, float *to)
{
    const int64_t first = (int64_t)blockIdx.x * width;
    for (int i = (int)threadIdx.x; i < width && first + i < job.op.c; i += STRIPE_THREADS) {
        float sum = 0;
        for (int line = 0; line < job.stripes.lines; line++)
            sum += lines[line * width + i];
        to[blockIdx.y * job.op.c + first + i] = sum;
    }
}

template <typename Stored, bool ALIGNED, enum mask MASK>
static __global__ void __launch_bounds__(STRIPE_THREADS, ALIGNED ? 2 : 1) sum_group(struct gradient_job job)
{
    const int length = element_pack<Stored>::LENGTH;
    __shared__ float sums[STRIPE_THREADS * length], dots[STRIPE_THREADS * length];
    const struct stripe_place at = stripe_place_of<Stored>(job.stripes);
    const int64_t lines = job.stripes.lines;
    float sum[length] = {}, dot[length] = {};
    if (at.left > 0) {
        const gradient_columns<length> own = read_columns<MASK, ALIGNED, length>(job.op, at);
        int64_t row = at.row;
        for (; row + (BATCH_NORM_AT_ONCE - 1) * lines < at.end; row += BATCH_NORM_AT_ONCE * lines)
            add_rows<BATCH_NORM_AT_ONCE, MASK, ALIGNED, Stored, length>(job, at, row, own, sum, dot);
        for (; row < at.end; row += lines)
            add_rows<1, MASK, ALIGNED, Stored, length>(job, at, row, own, sum, dot);
    }
#pragma unroll
    for (int i = 0; i < length; i++) {
        sums[threadIdx.x * length + i] = sum[i];
        dots[threadIdx.x * length + i] = dot[i];
    }
    __syncthreads();
    add_lines(job, job.stripes.lanes * length, sums, job.partial);
    add_lines(job, job.stripes.lanes * length, dots, job.partial + job.stripes.groups * job.op.c);
}

static __device__ inline void store(float *to, float value, bool accumulate)
{
    *to = accumulate ? *to + value : value;
}

/* dx = dy slope + (x - mean) back + away: the last two go into the workspace. */
static __device__ inline void finish_column(const struct batch_norm_backward &op, int64_t i, float sum, float dot)
{
    const float rstd = op.rstd[i], rows = (float)op.rows, slope = op.weight[i] * rstd;
    const float part = op.rows > 0 ? op.share * op.momentum : 0;
    store(op.dweight + i, dot * rstd, op.accumulate);
    store(op.dbias + i, sum, op.accumulate);
    store(op.mean_step + i, part * (op.running_mean[i] - op.mean[i]), op.accumulate);
    store(op.variance_step + i, part * (op.running_variance[i] - op.variance[i]), op.accumulate);
    op.workspace[i] = op.rows > 0 ? -slope * (rstd * rstd) * (dot / rows) : 0;
    op.workspace[op.c + i] = op.rows > 0 ? -slope * (sum / rows) : 0;
}

static __global__ void __launch_bounds__(BATCH_NORM_FINISH_LINES *BATCH_NORM_FINISH_COLUMNS)
    each_column(struct gradient_job job)
{
    __shared__ float places[BATCH_NORM_FINISH_LINES][BATCH_NORM_FINISH_COLUMNS];
    const struct batch_norm_backward &op = job.op;
    const int64_t column = (int64_t)blockIdx.x * BATCH_NORM_FINISH_COLUMNS + threadIdx.x, groups = job.stripes.groups;
    const int64_t end = column < op.c ? groups : 0;
    float sum = 0, dot = 0;
#pragma unroll 4
    for (int64_t group = threadIdx.y; group < end; group += BATCH_NORM_FINISH_LINES) {
        sum += job.partial[group * op.c + column];
        dot += job.partial[(groups + group) * op.c + column];
    }
    sum = batch_norm_lines_sum(places, sum);
    dot = batch_norm_lines_sum(places, dot);
    if (threadIdx.y == 0 && column < op.c)
        finish_column(op, column, sum, dot);
}

/* ---------------------------------------------------------------- dx */

/* Further values of a thread's columns. */
template <int LENGTH> struct gradient_line {
    float slope[LENGTH], back[LENGTH], away[LENGTH];
};

template <bool ALIGNED, int LENGTH>
static __device__ inline gradient_line<LENGTH> read_line(const struct batch_norm_backward &op, const struct stripe_place &at)
{
    gradient_line<LENGTH> line;
    float weight[LENGTH];
    read_numbers<ALIGNED, LENGTH>(op.weight + at.column, at.left, weight);
    read_numbers<ALIGNED, LENGTH>(op.rstd + at.column, at.left, line.slope);
    read_numbers<ALIGNED, LENGTH>(op.workspace + at.column, at.left, line.back);
    read_numbers<ALIGNED, LENGTH>(op.workspace + op.c + at.column, at.left, line.away);
#pragma unroll
    for (int i = 0; i < LENGTH; i++)
        line.slope[i] = weight[i] * line.slope[i];
    return line;
}

/* COUNT rows from `row` on. */
template <int COUNT, enum mask MASK, bool ALIGNED, typename Stored, int LENGTH>
static __device__ inline void go_back(const struct gradient_job &job, const struct stripe_place &at, int64_t row,
                                      const gradient_columns<LENGTH> &own, const gradient_line<LENGTH> &line)
{
    const struct batch_norm_backward &op = job.op;
    const int64_t step = job.stripes.lines * op.c, place = row * op.c + at.column;
    const float *from = MASK >= MASK_SUM ? op.masked : op.dy;
    element_pack<Stored> x[COUNT], dy[COUNT];
#pragma unroll
    for (int r = 0; r < COUNT; r++) {
        x[r] = read_pack<ALIGNED>(values<Stored>(op.x).start + place + r * step, at.left);
        dy[r] = read_pack<ALIGNED>(values<Stored>(from).start + place + r * step, at.left);
    }
#pragma unroll
    for (int r = 0; r < COUNT; r++) {
#pragma unroll
        for (int i = 0; i < LENGTH; i++) {
            const float distance = widen(x[r].at[i]) - own.mean[i];
            float g = widen(dy[r].at[i]);
            if (MASK == MASK_OWN)
                g = mask_own<Stored>(own, i, widen(x[r].at[i]), g);
            narrow(fmaf(g, line.slope[i], fmaf(distance, line.back[i], line.away[i])), &x[r].at[i]);
        }
        write_pack<ALIGNED>(values<Stored>(op.dx).start + place + r * step, x[r], at.left);
    }
}

template <typename Stored, bool ALIGNED, enum mask MASK>
static __global__ void __launch_bounds__(STRIPE_THREADS, ALIGNED ? 2 : 1) each_group(struct gradient_job job)
{
    const int length = element_pack<Stored>::LENGTH;
    const struct stripe_place at = stripe_place_of<Stored>(job.stripes);
    const int64_t lines = job.stripes.lines;
    if (at.left <= 0)
        return;
    const gradient_columns<length> own = read_columns<MASK, ALIGNED, length>(job.op, at);
    const gradient_line<length> line = read_line<ALIGNED, length>(job.op, at);
    int64_t row = at.row;
    for (; row + (BATCH_NORM_AT_ONCE - 1) * lines < at.end; row += BATCH_NORM_AT_ONCE * lines)
        go_back<BATCH_NORM_AT_ONCE, MASK, ALIGNED, Stored, length>(job, at, row, own, line);
    for (; row < at.end; row += lines)
        go_back<1, MASK, ALIGNED, Stored, length>(job, at, row, own, line);
}

/* ---------------------------------------------------------------- launches */

static enum mask mask_of(const struct batch_norm_backward *op)
{
    if (op->relu_output)
        return op->others ? MASK_SUM_OF_TWO : MASK_SUM;
    return op->activation == ACTIVATION_RELU ? MASK_OWN : MASK_NONE;
}

template <typename Stored, bool ALIGNED, enum mask MASK>
static void launch_masked(const struct cuda_call *call, struct gradient_job job)
{
    /* The first pass writes the masked gradient, so the second need not compute the mask. */
    const enum mask later = MASK == MASK_SUM_OF_TWO ? MASK_SUM : MASK;
    const struct batch_norm_backward &op = job.op;
    job.stripes = batch_norm_sum_stripes<Stored>(op.rows, op.c);
    job.partial = batch_norm_partial(call, job.stripes, op.workspace);
    if (op.rows > 0)
        launch_kernel(call, dim3(job.stripes.stripes, job.stripes.groups), STRIPE_THREADS, 0,
                      sum_group<Stored, ALIGNED, MASK>, job);
    batch_norm_finish(call, op.c, each_column, job);
    if (!op.dx || op.rows == 0)
        return;
    job.stripes = stripe_columns<Stored>(op.rows, op.c, BATCH_NORM_AT_ONCE, BATCH_NORM_BLOCKS);
    launch_kernel(call, dim3(job.stripes.stripes, job.stripes.groups), STRIPE_THREADS, 0,
                  each_group<Stored, ALIGNED, later>, job);
}

template <typename Stored, bool ALIGNED> static void launch_aligned(const struct cuda_call *call, const struct gradient_job &job)
{
    static void (*const launches[])(const struct cuda_call *, struct gradient_job) = {
        launch_masked<Stored, ALIGNED, MASK_NONE>, launch_masked<Stored, ALIGNED, MASK_OWN>,
        launch_masked<Stored, ALIGNED, MASK_SUM>, launch_masked<Stored, ALIGNED, MASK_SUM_OF_TWO>};
    launches[mask_of(&job.op)](call, job);
}

template <typename Stored> static void launch(const struct cuda_call *call, const struct batch_norm_backward *op)
{
    const struct gradient_job job = {*op, {}, NULL};
    const bool aligned = are_aligned(op->x, op->dy, op->dx, op->weight, op->bias, op->mean, op->rstd, op->relu_output,
                                     op->others, op->masked, op->workspace) &&
                         op->c % element_pack<Stored>::LENGTH == 0;
    if (op->c == 0)
        return;
    if (aligned)
        launch_aligned<Stored, true>(call, job);
    else
        launch_aligned<Stored, false>(call, job);
}

void cuda_batch_norm_backward(const struct cuda_call *call, const struct batch_norm_backward *op)
{
    BY_STORED(call, launch, call, op);
}
