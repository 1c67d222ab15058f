/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/attention_tensor.cuh"

#define STATISTICS_BYTES (2 * ATTENTION_TILE * sizeof(float))

/* They lie behind the tiles. */
template <typename Stored> static __device__ inline struct row_statistics statistics_behind(Stored *tiles)
{
    float *start = (float *)tiles;
    return {start, start + ATTENTION_TILE};
}

/* Scores become softmax weights P, and dscores, which are dP, become dS = P (dP - dot) / sqrt(width). `by_key`: a row is a
 * key's, a column a query's. */
static __device__ inline void weigh(const struct attention_head &head, int64_t query, int64_t key, bool by_key,
                                    const struct row_statistics &statistics, float scores[KEY_TILES][4],
                                    float dscores[KEY_TILES][4])
{
#pragma unroll
    for (int j = 0; j < KEY_TILES; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = sum_row(i), column = sum_column(j, i);
            const int at_query = by_key ? column : row, at_key = by_key ? row : column;
            const bool seen = key + at_key <= query + at_query && query + at_query < head.t;
            const float weight = seen ? expf(scores[j][i] * head.scale - statistics.logsumexp[at_query]) : 0;
            scores[j][i] = weight;
            dscores[j][i] = weight * (dscores[j][i] - statistics.dots[at_query]) * head.scale;
        }
}

template <int STEPS, typename Stored>
static __global__ void __launch_bounds__(TILE_WARPS *WARP) each_query_tile(struct attention_backward op, bool whole)
{
    extern __shared__ __align__(16) float shared[];
    const struct attention_head head = attention_head(op.t, op.c, op.heads, attention_number(op.t));
    const Stored *qkv = (const Stored *)op.qkv, *gradient = (const Stored *)op.dy;
    Stored *queries = (Stored *)shared, *dy = queries + ROW_TILE(STEPS);
    Stored *keys = dy + ROW_TILE(STEPS), *value_rows = keys + ROW_TILE(STEPS);
    Stored *turned_keys = value_rows + ROW_TILE(STEPS);
    const struct row_statistics statistics = statistics_behind(turned_keys + TURNED_TILE(STEPS));
    const int64_t query = first_query(op.t);
    float sums[2 * STEPS][4] = {};
    load_rows<STEPS>(head, whole, qkv + head.query, head.qkv_row, query, queries);
    load_rows<STEPS>(head, whole, gradient + head.output, head.output_row, query, dy);
    load_statistics<Stored, TILE_WARPS>(op, head, query, (int)threadIdx.y, (int)threadIdx.x, statistics);
    for (int64_t key = 0; key <= query; key += ATTENTION_TILE) {
        float scores[KEY_TILES][4] = {}, dscores[KEY_TILES][4] = {};
        load_rows<STEPS>(head, whole, qkv + head.key, head.qkv_row, key, keys);
        load_rows<STEPS>(head, whole, qkv + head.value, head.qkv_row, key, value_rows);
        load_turned<STEPS>(head, qkv + head.key, head.qkv_row, key, turned_keys);
        __syncthreads();
        multiply_tiles<STEPS>(queries, keys, scores);
        multiply_tiles<STEPS>(dy, value_rows, dscores);
        weigh(head, query, key, false, statistics, scores, dscores);
        multiply_turned<STEPS>(dscores, turned_keys, sums);
        __syncthreads();
    }
    store_sums<STEPS>(head, (Stored *)op.dqkv + head.query, head.qkv_row, query, sums);
}

template <int STEPS, typename Stored>
static __device__ inline void load_both_turned(const struct attention_backward &op, const struct attention_head &head,
                                               int64_t query, Stored *queries, Stored *dy)
{
    const Stored *qkv = (const Stored *)op.qkv, *gradient = (const Stored *)op.dy;
    load_turned<STEPS>(head, qkv + head.query, head.qkv_row, query, queries);
    load_turned<STEPS>(head, gradient + head.output, head.output_row, query, dy);
}

/* Lean: turned tiles come to where the same were by row. */
template <int STEPS, bool LEAN, typename Stored>
static __global__ void __launch_bounds__(TILE_WARPS *WARP) each_key_tile(struct attention_backward op, bool whole)
{
    extern __shared__ __align__(16) float shared[];
    const struct attention_head head = attention_head(op.t, op.c, op.heads, attention_number(op.t));
    const Stored *qkv = (const Stored *)op.qkv, *gradient = (const Stored *)op.dy;
    Stored *to = (Stored *)op.dqkv;
    Stored *keys = (Stored *)shared, *value_rows = keys + ROW_TILE(STEPS);
    Stored *queries = value_rows + ROW_TILE(STEPS);
    Stored *dy = queries + (LEAN ? TILE_IN_TURN(STEPS) : ROW_TILE(STEPS));
    Stored *turned_queries = LEAN ? queries : dy + ROW_TILE(STEPS);
    Stored *turned_dy = LEAN ? dy : turned_queries + TURNED_TILE(STEPS);
    const struct row_statistics statistics =
        statistics_behind(turned_dy + (LEAN ? TILE_IN_TURN(STEPS) : TURNED_TILE(STEPS)));
    const int64_t key = attention_tile(op.t) * ATTENTION_TILE;
    float dkeys[2 * STEPS][4] = {}, dvalues[2 * STEPS][4] = {};
    load_rows<STEPS>(head, whole, qkv + head.key, head.qkv_row, key, keys);
    load_rows<STEPS>(head, whole, qkv + head.value, head.qkv_row, key, value_rows);
    for (int64_t query = key; query < op.t; query += ATTENTION_TILE) {
        float scores[KEY_TILES][4] = {}, dscores[KEY_TILES][4] = {};
        load_rows<STEPS>(head, whole, qkv + head.query, head.qkv_row, query, queries);
        load_rows<STEPS>(head, whole, gradient + head.output, head.output_row, query, dy);
        if (!LEAN)
            load_both_turned<STEPS>(op, head, query, turned_queries, turned_dy);
        load_statistics<Stored, TILE_WARPS>(op, head, query, (int)threadIdx.y, (int)threadIdx.x, statistics);
        __syncthreads();
        multiply_tiles<STEPS>(keys, queries, scores);
        multiply_tiles<STEPS>(value_rows, dy, dscores);
        weigh(head, query, key, true, statistics, scores, dscores);
        if (LEAN) {
            __syncthreads();
            load_both_turned<STEPS>(op, head, query, turned_queries, turned_dy);
            __syncthreads();
        }
        multiply_turned<STEPS>(scores, turned_dy, dvalues);
        multiply_turned<STEPS>(dscores, turned_queries, dkeys);
        __syncthreads();
    }
    store_sums<STEPS>(head, to + head.key, head.qkv_row, key, dkeys);
    store_sums<STEPS>(head, to + head.value, head.qkv_row, key, dvalues);
}

/* Elements of tiles: each kernel's, and of the second when it is lean. */
#define OF_QUERIES(steps) (4 * ROW_TILE(steps) + TURNED_TILE(steps))
#define OF_KEYS(steps) (4 * ROW_TILE(steps) + 2 * TURNED_TILE(steps))
#define OF_KEYS_LEAN(steps) (2 * ROW_TILE(steps) + 2 * TILE_IN_TURN(steps))

static size_t bytes_of(int elements)
{
    return (size_t)elements * sizeof(uint16_t) + STATISTICS_BYTES;
}

size_t attention_bytes_tensor(int steps)
{
    return bytes_of(OF_QUERIES(steps) > OF_KEYS_LEAN(steps) ? OF_QUERIES(steps) : OF_KEYS_LEAN(steps));
}

template <int STEPS, typename Stored>
static void launch_of(const struct cuda_call *call, const struct attention_backward *op)
{
    const bool whole = heads_are_whole(op->c, op->heads, op->qkv, op->dy);
    const dim3 threads(WARP, TILE_WARPS);
    launch_attention(call, *op, threads, bytes_of(OF_QUERIES(STEPS)), each_query_tile<STEPS, Stored>, whole);
    launch_fitting(call, *op, threads,
                   {bytes_of(OF_KEYS(STEPS)), bytes_of(OF_KEYS_LEAN(STEPS))},
                   each_key_tile<STEPS, false, Stored>, each_key_tile<STEPS, true, Stored>, whole);
}

template <int STEPS> static void launch(const struct cuda_call *call, const struct attention_backward *op)
{
    if (call->stored == STORED_FLOAT16)
        launch_of<STEPS, struct float16>(call, op);
    else
        launch_of<STEPS, struct bfloat16>(call, op);
}

void attention_backward_tensor(const struct cuda_call *call, const struct attention_backward *op)
{
    BY_COLUMNS(launch, call, op);
}
