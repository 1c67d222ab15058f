/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the gradient of an embedding table. Tokens are sorted by their row of the table once, by counting: a warp counts the tokens of
 * a chunk, the counts of all chunks tell where each chunk's tokens of a row belong, and the warp goes through its chunk again and puts
 * them there. So a row's tokens are together and in order, and a warp that sums a row reads only that row's tokens. Each count has one
 * writer: nothing is atomic.
 */
#include "common/extremes.h"
#include "worker/device/cuda/stored.cuh"
#include "worker/device/cuda/warp.cuh"

#define TOKENS_AT_ONCE 8   /* a lane reads the gradients of this many tokens before it adds them */
#define ROWS_AT_ONCE 8     /* a lane reads the numbers of this many rows before it uses them */
#define SEGMENT_TOKENS 256 /* a segment has at least */
#define SEGMENTS_MAX 32
#define SUMMING_WARPS 8 /* of a block */
#define CHUNK_TOKENS 512
#define CHUNKS_MAX 128
#define SCAN_THREADS 1024

/* The most tokens and rows that are sorted at once; more are sorted piece by piece. The counts of one chunk fit at least. */
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
    for (int64_t chunk = 0; chunk < job.chunks; chunk += ROWS_AT_ONCE) {
        int *counts = job.counts + chunk * job.rows + row, more[ROWS_AT_ONCE];
#pragma unroll
        for (int k = 0; k < ROWS_AT_ONCE; k++)
            more[k] = chunk + k < job.chunks ? counts[k * job.rows] : 0;
#pragma unroll
        for (int k = 0; k < ROWS_AT_ONCE; k++) {
            if (chunk + k < job.chunks)
                counts[k * job.rows] = sum;
            sum += more[k];
        }
    }
    job.begins[row] = sum;
}

/* Turns each row's number of tokens into the position where they begin. One block; each thread has a part of the rows. */
static __global__ void begin_rows(struct token_job job)
{
    __shared__ int sums[SCAN_THREADS];
    const int self = (int)threadIdx.x;
    const int64_t first = part(job.rows, self, SCAN_THREADS), end = part(job.rows, self + 1, SCAN_THREADS);
    int sum = 0;
#pragma unroll 8
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
    for (int64_t row = first; row < end; row += ROWS_AT_ONCE) {
        int more[ROWS_AT_ONCE];
#pragma unroll
        for (int k = 0; k < ROWS_AT_ONCE; k++)
            more[k] = row + k < end ? job.begins[row + k] : 0;
#pragma unroll
        for (int k = 0; k < ROWS_AT_ONCE; k++) {
            if (row + k < end)
                job.begins[row + k] = begin;
            begin += more[k];
        }
    }
    if (self == SCAN_THREADS - 1)
        job.begins[job.rows] = begin;
}

/* The gradients of COUNT tokens, all of which are read before the first is added. */
template <int COUNT, bool ALIGNED, typename Stored>
static __device__ inline void take_tokens(const int *tokens, const Stored *dy, int64_t row, int64_t left, float *sums)
{
    int64_t places[COUNT];
    element_pack<Stored> some[COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; k++)
        places[k] = tokens[k] * row;
#pragma unroll
    for (int k = 0; k < COUNT; k++)
        some[k] = read_pack<ALIGNED>(dy + places[k], left);
#pragma unroll
    for (int k = 0; k < COUNT; k++)
#pragma unroll
        for (int i = 0; i < some[k].LENGTH; i++)
            sums[i] += widen(some[k].at[i]);
}

/* sums[i] += the gradients of the sorted tokens begin..end-1 in column + i, one after the other. */
template <bool ALIGNED, typename Stored>
static __device__ inline void add_tokens(const struct token_job &job, int begin, int end, int64_t column,
                                         float sums[element_pack<Stored>::LENGTH])
{
    const Stored *dy = values<Stored>(job.op.dy).start + job.first_token * job.op.c + column;
    const int64_t left = job.op.c - column;
    if (left <= 0)
        return;
    for (; begin + TOKENS_AT_ONCE <= end; begin += TOKENS_AT_ONCE)
        take_tokens<TOKENS_AT_ONCE, ALIGNED>(job.sorted + begin, dy, job.op.c, left, sums);
    for (; begin + 3 <= end; begin += 3)
        take_tokens<3, ALIGNED>(job.sorted + begin, dy, job.op.c, left, sums);
    for (; begin < end; begin++)
        take_tokens<1, ALIGNED>(job.sorted + begin, dy, job.op.c, left, sums);
}

template <bool ALIGNED, int LENGTH>
static __device__ inline void store(const struct token_job &job, int64_t row, int64_t column, const float sums[LENGTH])
{
    const int64_t left = job.op.c - column;
    float *to = job.op.dtoken + (job.first_row + row) * job.op.c + column, there[LENGTH] = {};
    if (left <= 0)
        return;
    if (job.add)
        read_numbers<ALIGNED, LENGTH>(to, left, there);
#pragma unroll
    for (int i = 0; i < LENGTH; i++)
        there[i] = job.add ? there[i] + sums[i] : sums[i];
    write_numbers<ALIGNED, LENGTH>(to, there, left);
}

/* A warp owns a row of the table, and as many columns as its lanes hold in packs. */
template <typename Stored, bool ALIGNED>
static __global__ void __launch_bounds__(WARP *SUMMING_WARPS, ALIGNED ? 4 : 2) each_table_row(struct token_job job)
{
    const int length = element_pack<Stored>::LENGTH;
    const int64_t row = (int64_t)blockIdx.x * SUMMING_WARPS + threadIdx.y;
    const int64_t column = ((int64_t)blockIdx.y * WARP + threadIdx.x) * length;
    if (row >= job.rows)
        return;
    const int begin = job.begins[row], end = job.begins[row + 1];
    if (begin == end && job.add)
        return;
    float sums[length] = {};
    add_tokens<ALIGNED, Stored>(job, begin, end, column, sums);
    store<ALIGNED, length>(job, row, column, sums);
}

/* Returns the first of the sorted tokens begin..end-1 with a number of at least `token`. */
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

/* A block owns a row; its warps divide the segments among them, and the segments' sums are added in order. */
template <typename Stored, bool ALIGNED>
static __global__ void __launch_bounds__(WARP *SUMMING_WARPS, ALIGNED ? 3 : 2) each_shared_row(struct token_job job)
{
    const int length = element_pack<Stored>::LENGTH;
    __shared__ float parts[SEGMENTS_MAX][length][WARP];
    const int64_t row = blockIdx.x, column = ((int64_t)blockIdx.y * WARP + threadIdx.x) * length;
    const int begin = job.begins[row], end = job.begins[row + 1], lane = (int)threadIdx.x;
    if (begin == end && job.add)
        return;
    for (int segment = (int)threadIdx.y; segment < job.segments; segment += SUMMING_WARPS) {
        float sums[length] = {};
        add_tokens<ALIGNED, Stored>(job, from_token(job, begin, end, part(job.count, segment, job.segments)),
                                    from_token(job, begin, end, part(job.count, segment + 1, job.segments)), column,
                                    sums);
        for (int i = 0; i < length; i++)
            parts[segment][i][lane] = sums[i];
    }
    __syncthreads();
    if (threadIdx.y > 0)
        return;
    float sums[length] = {};
    for (int segment = 0; segment < job.segments; segment++)
        for (int i = 0; i < length; i++)
            sums[i] += parts[segment][i][lane];
    store<ALIGNED, length>(job, row, column, sums);
}

template <typename Stored, bool ALIGNED> static __global__ void each_position(struct embedding_backward op)
{
    typedef element_pack<Stored> pack;
    const int64_t elements = op.t * op.c;
    EACH(number, (elements + pack::LENGTH - 1) / pack::LENGTH);
    const int64_t first = number * pack::LENGTH, left = elements - first;
    const Stored *dy = values<Stored>(op.dy).start + first;
    float sums[pack::LENGTH] = {}, there[pack::LENGTH] = {};
#pragma unroll 4
    for (int64_t b = 0; b < op.b; b++) {
        const pack some = read_pack<ALIGNED>(dy + b * elements, left);
#pragma unroll
        for (int i = 0; i < pack::LENGTH; i++)
            sums[i] += widen(some.at[i]);
    }
    if (op.accumulate)
        read_numbers<ALIGNED, pack::LENGTH>(op.dposition + first, left, there);
#pragma unroll
    for (int i = 0; i < pack::LENGTH; i++)
        sums[i] = op.accumulate ? there[i] + sums[i] : sums[i];
    write_numbers<ALIGNED, pack::LENGTH>(op.dposition + first, sums, left);
}

/* A token that is frequent would keep one warp busy for long; a large table has rows enough to go on with meanwhile. Sums are
 * taken segment by segment: other numbers here are other bits. */
static int segments_for(const struct embedding_backward &op, int64_t count)
{
    int64_t segments = int64_min(count / SEGMENT_TOKENS, CUDA_SCRATCH_FLOATS / (op.vocabulary * op.c));
    return segments < 1 ? 1 : (int)int64_min(segments, SEGMENTS_MAX);
}

static int chunks_for(int64_t rows, int64_t count)
{
    int64_t fitting = (CUDA_SCRATCH_FLOATS - count - rows - 1) / rows,
            wanted = (count + CHUNK_TOKENS - 1) / CHUNK_TOKENS;
    return (int)int64_min(int64_min(wanted, CHUNKS_MAX), fitting);
}

static void sort_tokens(const struct cuda_call *call, const struct token_job &job)
{
    launch_each(call, job.chunks * job.rows, clear_counts, job);
    launch_rows(call, job.chunks, each_chunk<false>, job);
    launch_each(call, job.rows, sum_chunks, job);
    launch_kernel(call, 1, SCAN_THREADS, 0, begin_rows, job);
    launch_rows(call, job.chunks, each_chunk<true>, job);
}

template <typename Stored, bool ALIGNED>
static void sum_tokens(const struct cuda_call *call, const struct token_job &job)
{
    const int64_t length = element_pack<Stored>::LENGTH;
    const unsigned columns = (unsigned)((job.op.c + WARP * length - 1) / (WARP * length));
    const dim3 threads(WARP, SUMMING_WARPS);
    if (job.segments > 1)
        launch_kernel(call, dim3((unsigned)job.rows, columns), threads, 0, each_shared_row<Stored, ALIGNED>, job);
    else
        launch_kernel(call, dim3((unsigned)((job.rows + SUMMING_WARPS - 1) / SUMMING_WARPS), columns), threads, 0,
                      each_table_row<Stored, ALIGNED>, job);
}

template <typename Stored, bool ALIGNED>
static void run(const struct cuda_call *call, const struct embedding_backward *op)
{
    const int64_t tokens = op->b * op->t, length = element_pack<Stored>::LENGTH;
    for (int64_t row = 0; row < op->vocabulary; row += PIECE_ROWS)
        for (int64_t token = 0; token == 0 || token < tokens; token += PIECE_TOKENS) { /* no tokens give zeros */
            struct token_job job = {};
            job.op = *op;
            job.first_row = row;
            job.rows = int64_min(op->vocabulary - row, PIECE_ROWS);
            job.first_token = token;
            job.count = int64_min(tokens - token, PIECE_TOKENS);
            job.add = op->accumulate || op->token_begun || token > 0;
            job.segments = segments_for(*op, job.count);
            job.chunks = chunks_for(job.rows, job.count);
            job.begins = (int *)call->scratch;
            job.sorted = job.begins + job.rows + 1;
            job.counts = job.sorted + job.count;
            sort_tokens(call, job);
            sum_tokens<Stored, ALIGNED>(call, job);
        }
    launch_each(call, (op->t * op->c + length - 1) / length, each_position<Stored, ALIGNED>, *op);
}

template <typename Stored> static void launch(const struct cuda_call *call, const struct embedding_backward *op)
{
    if (op->c % element_pack<Stored>::LENGTH == 0 && are_aligned(op->dy, op->dtoken, op->dposition))
        run<Stored, true>(call, op);
    else
        run<Stored, false>(call, op);
}

void cuda_embedding_backward(const struct cuda_call *call, const struct embedding_backward *op)
{
    BY_STORED(call, launch, call, op);
}
