/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/attention_tensor.cuh"

/* A block's shared memory. Each kernel needs some tiles by row as well. */
struct attention_tiles {
    float *queries, *keys, *values, *dy, *scores, *by_row;
    struct row_statistics statistics;
};

static __device__ struct attention_tiles attention_tiles(const struct attention_head &head, float *shared)
{
    const int tile = head.width * ATTENTION_PITCH;
    struct attention_tiles tiles = {};
    tiles.queries = shared;
    tiles.keys = tiles.queries + tile;
    tiles.values = tiles.keys + tile;
    tiles.dy = tiles.values + tile;
    tiles.scores = tiles.dy + tile;
    tiles.statistics.logsumexp = tiles.scores + ATTENTION_TILE * ATTENTION_PITCH;
    tiles.statistics.dots = tiles.statistics.logsumexp + ATTENTION_TILE;
    tiles.by_row = tiles.statistics.dots + ATTENTION_TILE;
    return tiles;
}

template <int COLUMNS>
static __device__ void load_keys(const struct attention_backward &op, const struct attention_head &head, int64_t key,
                                 const struct attention_tiles &tiles, float *keys_by_row)
{
    load_tile<COLUMNS>(head, op.qkv + head.key, head.qkv_row, key, tiles.keys, keys_by_row);
    load_tile<COLUMNS>(head, op.qkv + head.value, head.qkv_row, key, tiles.values, NULL);
}

/* With the statistics of their rows. */
template <int COLUMNS>
static __device__ void load_queries(const struct attention_backward &op, const struct attention_head &head,
                                    int64_t query, const struct attention_tiles &tiles, float *queries_by_row,
                                    float *dy_by_row)
{
    load_tile<COLUMNS>(head, op.qkv + head.query, head.qkv_row, query, tiles.queries, queries_by_row);
    load_tile<COLUMNS>(head, op.dy + head.output, head.output_row, query, tiles.dy, dy_by_row);
    load_statistics<float, ATTENTION_SIDE * ATTENTION_SIDE / WARP>(op, head, query, attention_thread() / WARP,
                                                                   attention_thread() % WARP, tiles.statistics);
}

/* Softmax weights P of the tile, and dS = P (dP - dot) / sqrt(width). */
static __device__ void weigh(const struct attention_head &head, int64_t query, int64_t key,
                             const struct attention_tiles &tiles, float weights[ATTENTION_SHARE][ATTENTION_SHARE],
                             float dscores[ATTENTION_SHARE][ATTENTION_SHARE])
{
    multiply_rows(head, tiles.queries, tiles.keys, weights);
    multiply_rows(head, tiles.dy, tiles.values, dscores);
#pragma unroll
    for (int i = 0; i < ATTENTION_SHARE; i++)
#pragma unroll
        for (int j = 0; j < ATTENTION_SHARE; j++) {
            const int row = (int)threadIdx.y * ATTENTION_SHARE + i;
            const int64_t column = key + threadIdx.x * ATTENTION_SHARE + j;
            const bool seen = column <= query + row && query + row < head.t;
            const float weight = seen ? expf(weights[i][j] * head.scale - tiles.statistics.logsumexp[row]) : 0;
            weights[i][j] = weight;
            dscores[i][j] = weight * (dscores[i][j] - tiles.statistics.dots[row]) * head.scale;
        }
}

template <int COLUMNS> static __global__ void each_query_tile(struct attention_backward op)
{
    extern __shared__ __align__(16) float shared[];
    const struct attention_head head = attention_head(op.t, op.c, op.heads, blockIdx.y);
    const struct attention_tiles tiles = attention_tiles(head, shared);
    const int64_t query = (int64_t)(gridDim.x - 1 - blockIdx.x) * ATTENTION_TILE;
    float sums[ATTENTION_SHARE][COLUMNS] = {};
    load_queries<COLUMNS>(op, head, query, tiles, NULL, NULL);
    for (int64_t key = 0; key <= query; key += ATTENTION_TILE) {
        float weights[ATTENTION_SHARE][ATTENTION_SHARE] = {}, dscores[ATTENTION_SHARE][ATTENTION_SHARE] = {};
        load_keys<COLUMNS>(op, head, key, tiles, tiles.by_row);
        __syncthreads();
        weigh(head, query, key, tiles, weights, dscores);
        store_by_key(tiles.scores, dscores);
        __syncthreads();
        multiply_scores<COLUMNS>(tiles.scores, tiles.by_row, sums);
        __syncthreads();
    }
    store_rows<COLUMNS>(head, op.dqkv + head.query, head.qkv_row, query, sums);
}

template <int COLUMNS> static __global__ void each_key_tile(struct attention_backward op)
{
    extern __shared__ __align__(16) float shared[];
    const struct attention_head head = attention_head(op.t, op.c, op.heads, blockIdx.y);
    const struct attention_tiles tiles = attention_tiles(head, shared);
    const int64_t key = (int64_t)blockIdx.x * ATTENTION_TILE;
    float *queries = tiles.by_row, *dy = queries + ATTENTION_TILE * ATTENTION_SIDE * COLUMNS;
    float dkeys[ATTENTION_SHARE][COLUMNS] = {}, dvalues[ATTENTION_SHARE][COLUMNS] = {};
    load_keys<COLUMNS>(op, head, key, tiles, NULL);
    for (int64_t query = key; query < op.t; query += ATTENTION_TILE) {
        float weights[ATTENTION_SHARE][ATTENTION_SHARE] = {}, dscores[ATTENTION_SHARE][ATTENTION_SHARE] = {};
        load_queries<COLUMNS>(op, head, query, tiles, queries, dy);
        __syncthreads();
        weigh(head, query, key, tiles, weights, dscores);
        store_by_query(tiles.scores, weights);
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

template <int COLUMNS> static void launch_both(const struct cuda_call *call, const struct attention_backward *op)
{
    const size_t statistics = 2 * ATTENTION_TILE * sizeof(float);
    const int64_t width = op->c / op->heads;
    const dim3 threads(ATTENTION_SIDE, ATTENTION_SIDE);
    launch_attention(call, *op, threads, attention_bytes(width, COLUMNS, 4, 1) + statistics, each_query_tile<COLUMNS>);
    launch_attention(call, *op, threads, attention_bytes(width, COLUMNS, 4, 2) + statistics, each_key_tile<COLUMNS>);
}

void cuda_attention_backward(const struct cuda_call *call, const struct attention_backward *op)
{
    if (call->stored == STORED_BFLOAT16) {
        attention_backward_bfloat16(call, op);
        return;
    }
    BY_COLUMNS(launch_both, call, op);
}
