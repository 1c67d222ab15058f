/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/stored.cuh"
#include "worker/device/cuda/warp.cuh"

#define COLUMNS 4          /* of a lane */
#define SEGMENT_TOKENS 256 /* a segment has at least */

struct token_job {
    struct embedding_backward op;
    int64_t segments;
    float *partial; /* [segments, vocabulary, c] */
};

static __device__ void store(const struct token_job &job, int64_t at, float sum)
{
    if (job.segments > 1)
        job.partial[blockIdx.z * job.op.vocabulary * job.op.c + at] = sum;
    else
        job.op.dtoken[at] = job.op.accumulate || job.op.token_begun ? job.op.dtoken[at] + sum : sum;
}

/* A warp owns a row of the table and 32 * COLUMNS columns, and adds the gradients of a segment's tokens in order. */
template <typename Stored> static __global__ void each_table_row(struct token_job job)
{
    const struct embedding_backward &op = job.op;
    EACH_ROW(row, lane, op.vocabulary);
    const int64_t column = (int64_t)blockIdx.y * WARP * COLUMNS + lane, count = op.b * op.t;
    const int64_t first = count * blockIdx.z / job.segments, end = count * (blockIdx.z + 1) / job.segments;
    float sums[COLUMNS] = {};
    for (int64_t i = first; i < end; i += WARP) {
        const bool hit = i + lane < end && op.tokens[i + lane] == row;
        for (unsigned hits = __ballot_sync(~0u, hit); hits != 0; hits &= hits - 1) {
            const values<Stored> dy = values<Stored>(op.dy) + ((i + __ffs((int)hits) - 1) * op.c + column);
            for (int j = 0; j < COLUMNS; j++)
                if (column + j * WARP < op.c)
                    sums[j] += dy[j * WARP];
        }
    }
    for (int j = 0; j < COLUMNS; j++)
        if (column + j * WARP < op.c)
            store(job, row * op.c + column + j * WARP, sums[j]);
}

static __global__ void add_segments(struct token_job job)
{
    const int64_t elements = job.op.vocabulary * job.op.c;
    EACH(i, elements);
    float sum = 0;
#pragma unroll 8
    for (int64_t segment = 0; segment < job.segments; segment++)
        sum += job.partial[segment * elements + i];
    job.op.dtoken[i] = job.op.accumulate || job.op.token_begun ? job.op.dtoken[i] + sum : sum;
}

template <typename Stored> static __global__ void each_position(struct embedding_backward op)
{
    EACH(i, op.t * op.c);
    float sum = 0;
    for (int64_t b = 0; b < op.b; b++)
        sum += values<Stored>(op.dy)[b * op.t * op.c + i];
    op.dposition[i] = op.accumulate ? op.dposition[i] + sum : sum;
}

/* As many as the scratch holds: a token that is frequent would keep one warp busy for long. */
static int64_t segments_for(const struct embedding_backward *op)
{
    int64_t wanted = op->b * op->t / SEGMENT_TOKENS, fitting = CUDA_SCRATCH_FLOATS / (op->vocabulary * op->c);
    int64_t segments = wanted < fitting ? wanted : fitting;
    return segments < 1 ? 1 : segments > 32 ? 32 : segments;
}

void cuda_embedding_backward(const struct cuda_call *call, const struct embedding_backward *op)
{
    struct token_job job = {*op, segments_for(op), call->scratch};
    dim3 blocks((unsigned)((op->vocabulary + ROWS_PER_BLOCK - 1) / ROWS_PER_BLOCK),
                (unsigned)((op->c + WARP * COLUMNS - 1) / (WARP * COLUMNS)), (unsigned)job.segments);
    launch_kernel(call, blocks, dim3(WARP, ROWS_PER_BLOCK), 0, KERNEL_FOR(call, each_table_row), job);
    if (job.segments > 1)
        launch_each(call, op->vocabulary * op->c, add_segments, job);
    launch_each(call, op->t * op->c, KERNEL_FOR(call, each_position), *op);
}
