/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/attention_tensor.cuh"

/* A block's shared memory. Each kernel needs some tiles by row as well. Lean: queries give way to dy, keys to values, and both to
 * tiles by row. */
struct attention_tiles {
    float *queries, *keys, *values, *dy, *scores, *by_row, *more_by_row;
    float *logsumexp, *dots; /* of each query row of the tile; dots are the sums of dy y */
};

template <int COLUMNS, bool LEAN>
static __device__ struct attention_tiles attention_tiles(const struct attention_head &head, float *shared)
{
    const int tile = LEAN ? tile_in_turn(head.width, COLUMNS) : tile_by_column(head.width);
    struct attention_tiles tiles = {};
    tiles.queries = shared;
    tiles.keys = tiles.queries + tile;
    tiles.values = LEAN ? tiles.keys : tiles.keys + tile;
    tiles.dy = LEAN ? tiles.queries : tiles.values + tile;
    tiles.scores = (LEAN ? tiles.values : tiles.dy) + tile;
    tiles.logsumexp = tiles.scores + ATTENTION_TILE * ATTENTION_PITCH;
    tiles.dots = tiles.logsumexp + ATTENTION_TILE;
    tiles.by_row = LEAN ? tiles.queries : tiles.dots + ATTENTION_TILE;
    tiles.more_by_row = LEAN ? tiles.keys : tiles.by_row + tile_by_row(COLUMNS);
    return tiles;
}

template <int COLUMNS>
static __device__ void load_keys(const struct attention_backward &op, const struct attention_head &head, int64_t key,
                                 const struct attention_tiles &tiles, float *keys_by_row)
{
    load_tile<COLUMNS>(head, op.qkv + head.key, head.qkv_row, key, tiles.keys, keys_by_row);
    load_tile<COLUMNS>(head, op.qkv + head.value, head.qkv_row, key, tiles.values, NULL);
}

template <int COLUMNS>
static __device__ void load_queries(const struct attention_backward &op, const struct attention_head &head,
                                    int64_t query, const struct attention_tiles &tiles, float *queries_by_row,
                                    float *dy_by_row)
{
    load_tile<COLUMNS>(head, op.qkv + head.query, head.qkv_row, query, tiles.queries, queries_by_row);
    load_tile<COLUMNS>(head, op.dy + head.output, head.output_row, query, tiles.dy, dy_by_row);
}

/* A warp a row. */
static __device__ void load_row_statistics(const struct attention_backward &op, const struct attention_head &head,
                                           int64_t query, const struct attention_tiles &tiles)
{
    const values<float> y(op.y), dy(op.dy);
    const int lane = attention_thread() % WARP;
    for (int row = attention_thread() / WARP; row < ATTENTION_TILE; row += ATTENTION_SIDE * ATTENTION_SIDE / WARP) {
        const int64_t at = head.output + (query + row) * head.output_row;
        float dot = 0;
        if (query + row < head.t)
            for (int i = lane; i < head.width; i += WARP)
                dot += dy[at + i] * y[at + i];
        dot = warp_sum(dot);
        if (lane > 0)
            continue;
        tiles.dots[row] = dot;
        tiles.logsumexp[row] = query + row < head.t ? op.logsumexp[head.statistics + query + row] : 0;
    }
}

/* Scores become softmax weights P of the tile, and dscores, which are dP, become dS = P (dP - dot) / sqrt(width). */
static __device__ void weigh(const struct attention_head &head, int64_t query, int64_t key,
                             const struct attention_tiles &tiles, float weights[ATTENTION_SHARE][ATTENTION_SHARE],
                             float dscores[ATTENTION_SHARE][ATTENTION_SHARE])
{
#pragma unroll
    for (int i = 0; i < ATTENTION_SHARE; i++)
#pragma unroll
        for (int j = 0; j < ATTENTION_SHARE; j++) {
            const int row = (int)threadIdx.y * ATTENTION_SHARE + i;
            const int64_t column = key + threadIdx.x * ATTENTION_SHARE + j;
            const bool seen = column <= query + row && query + row < head.t;
            const float weight = seen ? expf(weights[i][j] * head.scale - tiles.logsumexp[row]) : 0;
            weights[i][j] = weight;
            dscores[i][j] = weight * (dscores[i][j] - tiles.dots[row]) * head.scale;
        }
}

/* The weights and dS of a tile, once its statistics and (unless lean) its tiles have been loaded. Lean: tiles by row may come to
 * where those by column were when it returns. */
template <int COLUMNS, bool LEAN>
static __device__ void compare(const struct attention_backward &op, const struct attention_head &head, int64_t query,
                               int64_t key, const struct attention_tiles &tiles,
                               float weights[ATTENTION_SHARE][ATTENTION_SHARE],
                               float dscores[ATTENTION_SHARE][ATTENTION_SHARE])
{
    if (LEAN) {
        load_tile<COLUMNS>(head, op.qkv + head.query, head.qkv_row, query, tiles.queries, NULL);
        load_tile<COLUMNS>(head, op.qkv + head.key, head.qkv_row, key, tiles.keys, NULL);
    }
    __syncthreads();
    multiply_rows(head, tiles.queries, tiles.keys, weights);
    if (LEAN) {
        __syncthreads();
        load_tile<COLUMNS>(head, op.dy + head.output, head.output_row, query, tiles.dy, NULL);
        load_tile<COLUMNS>(head, op.qkv + head.value, head.qkv_row, key, tiles.values, NULL);
        __syncthreads();
    }
    multiply_rows(head, tiles.dy, tiles.values, dscores);
    weigh(head, query, key, tiles, weights, dscores);
    if (LEAN)
        __syncthreads();
}

template <int COLUMNS, bool LEAN> static __global__ void each_query_tile(struct attention_backward op)
{
    extern __shared__ __align__(16) float shared[];
    const struct attention_head head = attention_head(op.t, op.c, op.heads, attention_number(op.t));
    const struct attention_tiles tiles = attention_tiles<COLUMNS, LEAN>(head, shared);
    const int64_t query = first_query(op.t);
    float sums[ATTENTION_SHARE][COLUMNS] = {};
    if (!LEAN)
        load_queries<COLUMNS>(op, head, query, tiles, NULL, NULL);
    load_row_statistics(op, head, query, tiles);
    for (int64_t key = 0; key <= query; key += ATTENTION_TILE) {
        float weights[ATTENTION_SHARE][ATTENTION_SHARE] = {}, dscores[ATTENTION_SHARE][ATTENTION_SHARE] = {};
        if (!LEAN)
            load_keys<COLUMNS>(op, head, key, tiles, tiles.by_row);
        compare<COLUMNS, LEAN>(op, head, query, key, tiles, weights, dscores);
        store_by_key(tiles.scores, dscores);
        if (LEAN)
            load_tile<COLUMNS>(head, op.qkv + head.key, head.qkv_row, key, NULL, tiles.by_row);
        __syncthreads();
        multiply_scores<COLUMNS>(tiles.scores, tiles.by_row, sums);
        __syncthreads();
    }
    store_rows<COLUMNS>(head, op.dqkv + head.query, head.qkv_row, query, sums);
}

template <int COLUMNS, bool LEAN> static __global__ void each_key_tile(struct attention_backward op)
{
    extern __shared__ __align__(16) float shared[];
    const struct attention_head head = attention_head(op.t, op.c, op.heads, attention_number(op.t));
    const struct attention_tiles tiles = attention_tiles<COLUMNS, LEAN>(head, shared);
    const int64_t key = attention_tile(op.t) * ATTENTION_TILE;
    float *queries = tiles.by_row, *dy = tiles.more_by_row;
    float dkeys[ATTENTION_SHARE][COLUMNS] = {}, dvalues[ATTENTION_SHARE][COLUMNS] = {};
    if (!LEAN)
        load_keys<COLUMNS>(op, head, key, tiles, NULL);
    for (int64_t query = key; query < op.t; query += ATTENTION_TILE) {
        float weights[ATTENTION_SHARE][ATTENTION_SHARE] = {}, dscores[ATTENTION_SHARE][ATTENTION_SHARE] = {};
        if (!LEAN)
            load_queries<COLUMNS>(op, head, query, tiles, queries, dy);
        load_row_statistics(op, head, query, tiles);
        compare<COLUMNS, LEAN>(op, head, query, key, tiles, weights, dscores);
        store_by_query(tiles.scores, weights);
        if (LEAN) {
            load_tile<COLUMNS>(head, op.qkv + head.query, head.qkv_row, query, NULL, queries);
            load_tile<COLUMNS>(head, op.dy + head.output, head.output_row, query, NULL, dy);
        }
        __syncthreads();
        multiply_scores<COLUMNS>(tiles.scores, dy, dvalues);
        __syncthreads();
        store_by_query(tiles.scores, dscores);
        __syncthreads();
        multiply_scores<COLUMNS>(tiles.scores, queries, dkeys);
        __syncthreads();
    }
    store_rows<COLUMNS>(head, op.dqkv + head.key, head.qkv_row, key, dkeys);
    store_rows<COLUMNS>(head, op.dqkv + head.value, head.qkv_row, key, dvalues);
}

#define STATISTICS_BYTES (2 * ATTENTION_TILE * sizeof(float))
static size_t lean_bytes(int64_t width, int columns)
{
    return attention_bytes(width, columns, 0, 0, 2) + STATISTICS_BYTES;
}

template <int COLUMNS> static void launch_both(const struct cuda_call *call, const struct attention_backward *op)
{
    const int64_t width = op->c / op->heads;
    const dim3 threads(ATTENTION_SIDE, ATTENTION_SIDE);
    const size_t lean = lean_bytes(width, COLUMNS);
    launch_fitting(call, attention_blocks(*op), threads, {attention_bytes(width, COLUMNS, 4, 1, 0) + STATISTICS_BYTES, lean},
                   each_query_tile<COLUMNS, false>, each_query_tile<COLUMNS, true>, *op);
    launch_fitting(call, attention_blocks(*op), threads, {attention_bytes(width, COLUMNS, 4, 2, 0) + STATISTICS_BYTES, lean},
                   each_key_tile<COLUMNS, false>, each_key_tile<COLUMNS, true>, *op);
}

size_t cuda_attention_bytes(int64_t width, enum stored stored)
{
    const int columns = columns_of(width);
    const bool is_tensor = stored != STORED_FLOAT32;
    const size_t there = is_tensor ? attention_forward_tensor_bytes(columns) : attention_bytes(width, columns, 1, 0, 1);
    const size_t back = is_tensor ? attention_backward_tensor_bytes(columns) : lean_bytes(width, columns);
    return back > there ? back : there;
}

void cuda_attention_backward(const struct cuda_call *call, const struct attention_backward *op)
{
    if (call->stored != STORED_FLOAT32) {
        attention_backward_tensor(call, op);
        return;
    }
    BY_COLUMNS(launch_both, call, op);
}
