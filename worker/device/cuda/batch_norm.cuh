/* SPDX-License-Identifier: Apache-2.0
 *
 * Provides what the batch normalisations share: y = (x - mean) slope + bias, rectified or added to
 * another tensor, computed with the same bits in the forward and the backward pass. Each thread
 * has 16 bytes of some rows (column_stripes.cuh), so that it reads the statistics of its columns
 * once.
 */
#ifndef COXSWAIN_DEVICE_CUDA_BATCH_NORM_CUH
#define COXSWAIN_DEVICE_CUDA_BATCH_NORM_CUH

#include "worker/device/cuda/column_stripes.cuh"

#define BATCH_NORM_EPSILON 1e-5f
#define BATCH_NORM_AT_ONCE 4 /* rows that a thread reads at a time */
/* Blocks of the kernels that compute sums. An H200 runs four of them at a time on each of its
 * 132 multiprocessors (two in the backward pass), so these are whole rounds. Other kernels have
 * enough blocks that a partial last round does not matter. */
#define BATCH_NORM_SUM_BLOCKS 528
#define BATCH_NORM_BLOCKS 2112

/* ---------------------------------------------------------------- y of x */

static __device__ inline float batch_norm_of(float x, float mean, float slope, float bias)
{
    return fmaf(x - mean, slope, bias);
}

struct batch_norm_line {
    int64_t rows, c;
    const float *x, *past, *weight, *bias, *mean;
    const float *rstd, *variance; /* one of them is given, the other is NULL */
    float *y;
    bool relu;
    struct column_stripes stripes; /* its own */
};
void batch_norm_line(const struct cuda_call *call, const struct batch_norm_line *line);

/* Returns the job of a batch_norm_forward or batch_norm_inference, without the statistics. */
template <typename Operation> static inline struct batch_norm_line batch_norm_line_of(const Operation &op)
{
    struct batch_norm_line line = {};
    line.rows = op.rows;
    line.c = op.c;
    line.x = op.x;
    line.past = op.past;
    line.weight = op.weight;
    line.bias = op.bias;
    line.y = op.y;
    line.relu = op.activation == ACTIVATION_RELU;
    return line;
}

/* ---------------------------------------------------------------- sums over rows */

/* The groups' two sums of each column, [2,groups,c], are combined by blocks of this many lines and columns. */
#define BATCH_NORM_FINISH_LINES 32
#define BATCH_NORM_FINISH_COLUMNS 32

template <typename Stored> static inline struct column_stripes batch_norm_sum_stripes(int64_t rows, int64_t c)
{
    struct column_stripes stripes = stripe_columns<Stored>(rows, c, BATCH_NORM_AT_ONCE, BATCH_NORM_SUM_BLOCKS);
    if (2 * c * stripes.groups > CUDA_SCRATCH_FLOATS) /* with this many columns, one group is enough */
        stripes = stripe_columns<Stored>(rows, c, BATCH_NORM_AT_ONCE, 1);
    return stripes;
}

/* Returns the memory for the groups' sums: the scratch if there are several groups, else the
 * workspace after its first 2 c floats (it has 4 c if there are rows). */
static inline float *batch_norm_partial(const struct cuda_call *call, const struct column_stripes &stripes, float *workspace)
{
    return stripes.groups > 1 ? call->scratch : workspace + 2 * stripes.columns;
}

/* Returns to all threads of a column the sum over the lines of such a block, added in order. */
static __device__ inline float batch_norm_lines_sum(float (*places)[BATCH_NORM_FINISH_COLUMNS], float own)
{
    float sum = 0;
    __syncthreads();
    places[threadIdx.y][threadIdx.x] = own;
    __syncthreads();
#pragma unroll
    for (int line = 0; line < BATCH_NORM_FINISH_LINES; line++)
        sum += places[line][threadIdx.x];
    return sum;
}

template <typename Job> static void batch_norm_finish(const struct cuda_call *call, int64_t c, void (*kernel)(Job), const Job &job)
{
    const int64_t blocks = (c + BATCH_NORM_FINISH_COLUMNS - 1) / BATCH_NORM_FINISH_COLUMNS;
    if (blocks > 0)
        launch_kernel(call, (unsigned)blocks, dim3(BATCH_NORM_FINISH_COLUMNS, BATCH_NORM_FINISH_LINES), 0, kernel, job);
}

#endif
