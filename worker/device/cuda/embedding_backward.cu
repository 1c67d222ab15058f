/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens are sorted by the row of the table that they are, once, by counting: a warp counts a chunk of them, the counts of all
 * chunks say where each chunk's tokens of a row belong, and the warp goes through its chunk again and puts them there. So a row's
 * tokens lie together in their order, and whoever sums a row reads its own tokens alone. Counts have one writer each: nothing is
 * atomic.
 */
#include "worker/device/cuda/stored.cuh"
#include "worker/device/cuda/warp.cuh"

#define COLUMNS 4          /* of a lane */
#define SEGMENT_TOKENS 256 /* a segment has at least */
#define SEGMENTS_MAX 32
#define SUMMING_WARPS 8 /* of a block */
#define CHUNK_TOKENS 512
#define CHUNKS_MAX 128
#define SCAN_THREADS 1024

/* What is sorted at once; more is done piece by piece. The counts of one chunk fit at least. */
#define PIECE_TOKENS (1 << 22)
#define PIECE_ROWS (1 << 17)

struct token_job {
    struct embedding_backward op;
    int64_t first_row, rows;    /* of the table, */
    int64_t first_token, count; /* and of all tokens, that this piece is about */
    bool add;                   /* to what the table has */
    int segments, chunks;
    int *counts; /* [chunks, rows], then how many tokens of the row the chunks before have */
    int *begins; /* [rows + 1]: where the row's tokens begin in: */
    int *sorted; /* [count], numbers of tokens */
};

static __device__ int64_t part(int64_t count, int64_t number, int64_t parts)
{
    return count * number / parts;
}

static __global__ void clear_counts(struct token_job job)
{
    EACH(i, job.chunks * job.rows);
    job.counts[i] = 0;
}

/* `placing`: puts the chunk's tokens where they belong, else counts them. */
template <bool placing> static __global__ void each_chunk(struct token_job job)
{
    EACH_ROW(chunk, lane, job.chunks);
    const int64_t end = part(job.count, chunk + 1, job.chunks);
    for (int64_t i = part(job.count, chunk, job.chunks) + lane; i - lane < end; i += WARP) {
        const int64_t number = i < end ? job.op.tokens[job.first_token + i] - job.first_row : -1;
        const bool mine = number >= 0 && number < job.rows;
        const int row = mine ? (int)number : -1;
        int before = 0, same = 1; /* of the row, in these 32 */
        for (int distance = 1; distance < WARP; distance++) {
            const bool hit = __shfl_xor_sync(~0u, row, distance) == row;
            same += hit;
            before += hit && (lane ^ distance) < lane;
        }
        int *count = job.counts + chunk * job.rows + row;
        const int known = mine ? *count : 0;
        __syncwarp();
        if (placing && mine)
            job.sorted[job.begins[row] + known + before] = (int)i;
        if (mine && before == 0)
            *count = known + same;
        __syncwarp();
    }
}

static __global__ void sum_chunks(struct token_job job)
{
    EACH(row, job.rows);
    int sum = 0;
    for (int64_t chunk = 0; chunk < job.chunks; chunk++) {
        int *count = job.counts + chunk * job.rows + row;
        const int more = *count;
        *count = sum;
        sum += more;
    }
    job.begins[row] = sum;
}

/* From how many tokens each row has to where they begin: one block, each of whose threads has a part of the rows. */
static __global__ void begin_rows(struct token_job job)
{
    __shared__ int sums[SCAN_THREADS];
    const int self = (int)threadIdx.x;
    const int64_t first = part(job.rows, self, SCAN_THREADS), end = part(job.rows, self + 1, SCAN_THREADS);
    int sum = 0;
    for (int64_t row = first; row < end; row++)
        sum += job.begins[row];
    sums[self] = sum;
    __syncthreads();
    for (int distance = 1; distance < SCAN_THREADS; distance *= 2) {
        const int more = self >= distance ? sums[self - distance] : 0;
        __syncthreads();
        sums[self] += more;
        __syncthreads();
    }
    int begin = sums[self] - sum;
    for (int64_t row = first; row < end; row++) {
        const int more = job.begins[row];
        job.begins[row] = begin;
        begin += more;
    }
    if (self == SCAN_THREADS - 1)
        job.begins[job.rows] = begin;
}

/* sums[j] += the gradients of the sorted tokens begin..end-1 in column + j * WARP, one after the other. */
template <typename Stored>
static __device__ void add_tokens(const struct token_job &job, int begin, int end, int64_t column, float sums[COLUMNS])
{
#pragma unroll 4
    for (int at = begin; at < end; at++) {
        const values<Stored> dy = values<Stored>(job.op.dy) + (job.first_token + job.sorted[at]) * job.op.c + column;
        for (int j = 0; j < COLUMNS; j++)
            if (column + j * WARP < job.op.c)
                sums[j] += dy[j * WARP];
    }
}

static __device__ void store(const struct token_job &job, int64_t row, int64_t column, const float sums[COLUMNS])
{
    float *to = job.op.dtoken + (job.first_row + row) * job.op.c + column;
    for (int j = 0; j < COLUMNS; j++)
        if (column + j * WARP < job.op.c)
            to[j * WARP] = job.add ? to[j * WARP] + sums[j] : sums[j];
}

/* A warp owns a row of the table and WARP * COLUMNS columns. */
template <typename Stored> static __global__ void each_table_row(struct token_job job)
{
    const int64_t row = (int64_t)blockIdx.x * SUMMING_WARPS + threadIdx.y;
    const int64_t column = (int64_t)blockIdx.y * WARP * COLUMNS + threadIdx.x;
    if (row >= job.rows)
        return;
    float sums[COLUMNS] = {};
    add_tokens<Stored>(job, job.begins[row], job.begins[row + 1], column, sums);
    store(job, row, column, sums);
}

/* The first of the sorted tokens begin..end-1 whose number is `token` or above. */
static __device__ int from_token(const struct token_job &job, int begin, int end, int64_t token)
{
    while (begin < end) {
        const int middle = begin + (end - begin) / 2;
        if (job.sorted[middle] < token)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* A block owns them, and its warps share out the segments, whose sums are added in order. */
template <typename Stored> static __global__ void each_shared_row(struct token_job job)
{
    __shared__ float parts[SEGMENTS_MAX][COLUMNS][WARP];
    const int64_t row = blockIdx.x, column = (int64_t)blockIdx.y * WARP * COLUMNS + threadIdx.x;
    const int begin = job.begins[row], end = job.begins[row + 1], lane = (int)threadIdx.x;
    for (int segment = (int)threadIdx.y; segment < job.segments; segment += SUMMING_WARPS) {
        float sums[COLUMNS] = {};
        add_tokens<Stored>(job, from_token(job, begin, end, part(job.count, segment, job.segments)),
                           from_token(job, begin, end, part(job.count, segment + 1, job.segments)), column, sums);
        for (int j = 0; j < COLUMNS; j++)
            parts[segment][j][lane] = sums[j];
    }
    __syncthreads();
    if (threadIdx.y > 0)
        return;
    float sums[COLUMNS] = {};
    for (int segment = 0; segment < job.segments; segment++)
        for (int j = 0; j < COLUMNS; j++)
            sums[j] += parts[segment][j][lane];
    store(job, row, column, sums);
}

template <typename Stored> static __global__ void each_position(struct embedding_backward op)
{
    EACH(i, op.t * op.c);
    float sum = 0;
    for (int64_t b = 0; b < op.b; b++)
        sum += values<Stored>(op.dy)[b * op.t * op.c + i];
    op.dposition[i] = op.accumulate ? op.dposition[i] + sum : sum;
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A token that is frequent would keep one warp busy for long; a large table has rows enough to go on with meanwhile. Sums are
 * taken segment by segment: other numbers here are other bits. */
static int segments_for(const struct embedding_backward &op, int64_t count)
{
    int64_t segments = lesser(count / SEGMENT_TOKENS, CUDA_SCRATCH_FLOATS / (op.vocabulary * op.c));
    return segments < 1 ? 1 : (int)lesser(segments, SEGMENTS_MAX);
}

static int chunks_for(int64_t rows, int64_t count)
{
    int64_t fitting = (CUDA_SCRATCH_FLOATS - count - rows - 1) / rows, wanted = (count + CHUNK_TOKENS - 1) / CHUNK_TOKENS;
    return (int)lesser(lesser(wanted, CHUNKS_MAX), fitting);
}

static void sort_tokens(const struct cuda_call *call, const struct token_job &job)
{
    launch_each(call, job.chunks * job.rows, clear_counts, job);
    launch_rows(call, job.chunks, each_chunk<false>, job);
    launch_each(call, job.rows, sum_chunks, job);
    launch_kernel(call, 1, SCAN_THREADS, 0, begin_rows, job);
    launch_rows(call, job.chunks, each_chunk<true>, job);
}

static void sum_tokens(const struct cuda_call *call, const struct token_job &job)
{
    const unsigned columns = (unsigned)((job.op.c + WARP * COLUMNS - 1) / (WARP * COLUMNS));
    const dim3 threads(WARP, SUMMING_WARPS);
    if (job.segments > 1)
        launch_kernel(call, dim3((unsigned)job.rows, columns), threads, 0, KERNEL_FOR(call, each_shared_row), job);
    else
        launch_kernel(call, dim3((unsigned)((job.rows + SUMMING_WARPS - 1) / SUMMING_WARPS), columns), threads, 0,
                      KERNEL_FOR(call, each_table_row), job);
}

void cuda_embedding_backward(const struct cuda_call *call, const struct embedding_backward *op)
{
    const int64_t tokens = op->b * op->t;
    for (int64_t row = 0; row < op->vocabulary; row += PIECE_ROWS)
        for (int64_t token = 0; token == 0 || token < tokens; token += PIECE_TOKENS) { /* no tokens give zeros */
            struct token_job job = {};
            job.op = *op;
            job.first_row = row;
            job.rows = lesser(op->vocabulary - row, PIECE_ROWS);
            job.first_token = token;
            job.count = lesser(tokens - token, PIECE_TOKENS);
            job.add = op->accumulate || op->token_begun || token > 0;
            job.segments = segments_for(*op, job.count);
            job.chunks = chunks_for(job.rows, job.count);
            job.begins = (int *)call->scratch;
            job.sorted = job.begins + job.rows + 1;
            job.counts = job.sorted + job.count;
            sort_tokens(call, job);
            sum_tokens(call, job);
        }
    launch_each(call, op->t * op->c, KERNEL_FOR(call, each_position), *op);
}
