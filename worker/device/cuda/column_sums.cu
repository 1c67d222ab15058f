/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums over the rows of a matrix of values, 16 bytes of a row at a time.
 */
#include "worker/device/cuda/column_sums.cuh"
#include "worker/device/cuda/stored.cuh"

#define THREADS 256
#define LANES_MAX 32 /* of a block, that have a row's columns between them; as many threads have the next row */
#define AT_ONCE 4    /* rows that a thread reads before it adds them */
/* With GPT-2's widths, this gives whole rounds of the blocks that an H200 runs at once, four on each of 132 multiprocessors. */
#define GROUPS_MAX 176

struct matrix {
    int64_t rows, columns, row;
    const float *x;
    int lanes;
    int64_t groups;
    float *partial; /* [groups,columns] */
};

template <bool ALIGNED, typename Stored>
static __device__ inline void add_rows(const struct matrix &job, int64_t column, int64_t row, int64_t end,
                                       float sums[element_pack<Stored>::LENGTH])
{
    typedef element_pack<Stored> pack;
    const int64_t lines = THREADS / job.lanes;
    for (; row < end; row += AT_ONCE * lines) {
        pack some[AT_ONCE] = {};
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (row + k * lines < end)
                some[k] = read_pack<ALIGNED>(values<Stored>(job.x).start + (row + k * lines) * job.row + column,
                                             job.columns - column);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
#pragma unroll
            for (int i = 0; i < pack::LENGTH; i++)
                sums[i] += widen(some[k].at[i]);
    }
}

/* Line t of a block adds rows t, t + lines, … of its group; then the lines are added in order. */
template <typename Stored, bool ALIGNED> static __global__ void __launch_bounds__(THREADS) each_group(struct matrix job)
{
    const int length = element_pack<Stored>::LENGTH;
    __shared__ float lines[THREADS * length];
    const int width = job.lanes * length, lane = (int)threadIdx.x % job.lanes, line = (int)threadIdx.x / job.lanes;
    const int64_t begin = (int64_t)blockIdx.x * width, column = begin + lane * length;
    const int64_t first = job.rows * blockIdx.y / job.groups, end = job.rows * (blockIdx.y + 1) / job.groups;
    float sums[length] = {};
    if (column < job.columns)
        add_rows<ALIGNED, Stored>(job, column, first + line, end, sums);
#pragma unroll
    for (int i = 0; i < length; i++)
        lines[line * width + lane * length + i] = sums[i];
    __syncthreads();
    for (int i = (int)threadIdx.x; i < width && begin + i < job.columns; i += THREADS) {
        float sum = 0;
        for (int at = i; at < THREADS * length; at += width)
            sum += lines[at];
        job.partial[blockIdx.y * job.columns + begin + i] = sum;
    }
}

static int lanes_for(int64_t packs)
{
    int lanes = 1;
    while (lanes < LANES_MAX && lanes < packs)
        lanes *= 2;
    return lanes;
}

static int64_t groups_for(const struct matrix &job)
{
    int64_t groups = job.rows / (THREADS / job.lanes * AT_ONCE);
    groups = groups > GROUPS_MAX ? GROUPS_MAX : groups;
    while (groups * job.columns > CUDA_SCRATCH_FLOATS)
        groups /= 2;
    return groups > 1 ? groups : 1;
}

template <typename Stored> static int64_t launch(const struct cuda_call *call, struct matrix job)
{
    const int64_t length = element_pack<Stored>::LENGTH;
    const bool aligned = are_aligned(job.x) && job.columns % length == 0 && job.row % length == 0;
    job.lanes = lanes_for((job.columns + length - 1) / length);
    job.groups = groups_for(job);
    const int64_t blocks = (job.columns + job.lanes * length - 1) / (job.lanes * length);
    launch_kernel(call, dim3((unsigned)blocks, (unsigned)job.groups), THREADS, 0,
                  aligned ? each_group<Stored, true> : each_group<Stored, false>, job);
    return job.groups;
}

void cuda_column_sums(const struct cuda_call *call, const float *x, int64_t rows, int64_t columns, int64_t row,
                      float *sums, bool accumulate)
{
    for (int64_t at = 0; at < columns; at += CUDA_SCRATCH_FLOATS) { /* mostly once */
        const int64_t some = columns - at < CUDA_SCRATCH_FLOATS ? columns - at : CUDA_SCRATCH_FLOATS;
        const float *from = (const float *)((const char *)x + at * stored_bytes(call->stored));
        const struct matrix job = {rows, some, row, from, 0, 0, call->scratch};
        const int64_t groups = BY_STORED(call, launch, call, job);
        launch_column_finish(call, {some, groups, job.partial, sums + at, NULL, accumulate});
    }
}
