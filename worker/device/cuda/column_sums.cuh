/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums the rows of a matrix whose elements a functor computes. Each block of threads sums 32
 * columns of one group of rows; then the groups' sums are added in order. The groups depend on the
 * shape alone.
 */
#ifndef COXSWAIN_DEVICE_CUDA_COLUMN_SUMS_CUH
#define COXSWAIN_DEVICE_CUDA_COLUMN_SUMS_CUH

#include "worker/device/cuda/warp.cuh"

#define COLUMN_SUM_LINES 16 /* rows that a block reads at a time */
#define COLUMN_SUM_GROUPS_MAX 64
#define COLUMN_SUM_ROWS 256 /* rows of a group, at least */

struct column_sums {
    int64_t rows, columns, groups;
    float *partial, *sums; /* partial[groups,columns] */
    bool accumulate;
};

/* Line t of the block adds rows t, t + COLUMN_SUM_LINES, … of its group; then the lines are
 * added in order. */
template <typename Element> static __global__ void column_sums_group(struct column_sums job, Element element)
{
    __shared__ float lines[COLUMN_SUM_LINES][WARP];
    const int64_t column = (int64_t)blockIdx.x * WARP + threadIdx.x;
    const int64_t first = job.rows * blockIdx.y / job.groups, end = job.rows * (blockIdx.y + 1) / job.groups;
    float sum = 0;
    if (column < job.columns)
#pragma unroll 4
        for (int64_t row = first + threadIdx.y; row < end; row += COLUMN_SUM_LINES)
            sum += element(row, column);
    lines[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || column >= job.columns)
        return;
    for (int line = 1; line < COLUMN_SUM_LINES; line++)
        sum += lines[line][threadIdx.x];
    if (job.groups > 1)
        job.partial[blockIdx.y * job.columns + column] = sum;
    else
        job.sums[column] = job.accumulate ? job.sums[column] + sum : sum;
}

/* Adds the groups' sums, for one matrix or for two whose partial sums lie one after the other
 * (`second` not NULL). */
#define COLUMN_FINISH_LINES 8
struct column_finish {
    int64_t columns, groups;
    const float *partial; /* [matrices,groups,columns] */
    float *sums, *second;
    bool accumulate;
};

/* Line t of the block adds groups t, t + COLUMN_FINISH_LINES, …; then the lines are added in
 * order. */
static __global__ void column_sums_finish(struct column_finish job)
{
    __shared__ float lines[COLUMN_FINISH_LINES][WARP];
    const int64_t column = (int64_t)blockIdx.x * WARP + threadIdx.x;
    const float *partial = job.partial + blockIdx.y * job.groups * job.columns + column;
    float *sums = blockIdx.y == 0 ? job.sums : job.second, sum = 0;
    if (column < job.columns)
#pragma unroll 8
        for (int64_t group = threadIdx.y; group < job.groups; group += COLUMN_FINISH_LINES)
            sum += partial[group * job.columns];
    lines[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || column >= job.columns)
        return;
    for (int line = 1; line < COLUMN_FINISH_LINES; line++)
        sum += lines[line][threadIdx.x];
    sums[column] = job.accumulate ? sums[column] + sum : sum;
}

static inline void launch_column_finish(const struct cuda_call *call, const struct column_finish &job)
{
    const unsigned blocks = (unsigned)((job.columns + WARP - 1) / WARP);
    launch_kernel(call, dim3(blocks, job.second ? 2 : 1), dim3(WARP, COLUMN_FINISH_LINES), 0, column_sums_finish, job);
}

static inline int64_t column_sum_groups(int64_t rows, int64_t columns)
{
    int64_t groups = rows / COLUMN_SUM_ROWS;
    groups = groups > COLUMN_SUM_GROUPS_MAX ? COLUMN_SUM_GROUPS_MAX : groups;
    while (groups * columns > CUDA_SCRATCH_FLOATS)
        groups /= 2;
    return groups > 1 ? groups : 1;
}

template <typename Element>
static void launch_column_sums(const struct cuda_call *call, int64_t rows, int64_t columns, float *sums,
                               bool accumulate, const Element &element)
{
    int64_t groups = column_sum_groups(rows, columns);
    struct column_sums job = {rows, columns, groups, call->scratch, sums, accumulate};
    unsigned blocks = (unsigned)((columns + WARP - 1) / WARP);
    if (blocks == 0)
        return;
    launch_kernel(call, dim3(blocks, (unsigned)groups), dim3(WARP, COLUMN_SUM_LINES), 0, column_sums_group<Element>,
                  job, element);
    if (groups > 1)
        launch_column_finish(call, {columns, groups, call->scratch, sums, NULL, accumulate});
}

#endif
