/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/attention_tensor.cuh"

/* Of 64 query rows: logsumexp, and dots, the sums of dy y. */
struct row_statistics {
    float *logsumexp, *dots;
};
#define STATISTICS_BYTES (2 * ATTENTION_TILE * sizeof(float))

/* They lie behind the tiles. */
static __device__ inline struct row_statistics statistics_behind(struct bfloat16 *tiles)
{
    float *start = (float *)tiles;
    return {start, start + ATTENTION_TILE};
}

/* A warp takes every fourth row. */
static __device__ void load_statistics(const struct attention_backward &op, const struct attention_head &head,
                                       int64_t query, const struct row_statistics &to)
{
    const values<struct bfloat16> y(op.y), dy(op.dy);
    for (int row = (int)threadIdx.y; row < ATTENTION_TILE; row += TILE_WARPS) {
        const int64_t at = head.output + (query + row) * head.output_row;
        float dot = 0;
        if (query + row < head.t)
            for (int i = (int)threadIdx.x; i < head.width; i += WARP)
                dot += dy[at + i] * y[at + i];
        dot = warp_sum(dot);
        if (threadIdx.x > 0)
            continue;
        to.dots[row] = dot;
        to.logsumexp[row] = query + row < head.t ? op.logsumexp[head.statistics + query + row] : 0;
    }
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

template <int STEPS>
static __global__ void __launch_bounds__(TILE_WARPS *WARP) each_query_tile(struct attention_backward op, bool whole)
{
    extern __shared__ __align__(16) float shared[];
    const struct attention_head head = attention_head(op.t, op.c, op.heads, blockIdx.y);
    const struct bfloat16 *qkv = (const struct bfloat16 *)op.qkv, *gradient = (const struct bfloat16 *)op.dy;
    struct bfloat16 *queries = (struct bfloat16 *)shared, *dy = queries + ROW_TILE(STEPS);
    struct bfloat16 *keys = dy + ROW_TILE(STEPS), *value_rows = keys + ROW_TILE(STEPS);
    struct bfloat16 *turned_keys = value_rows + ROW_TILE(STEPS);
    const struct row_statistics statistics = statistics_behind(turned_keys + TURNED_TILE(STEPS));
    const int64_t query = (int64_t)(gridDim.x - 1 - blockIdx.x) * ATTENTION_TILE;
    float sums[2 * STEPS][4] = {};
    load_rows<STEPS>(head, whole, qkv + head.query, head.qkv_row, query, queries);
    load_rows<STEPS>(head, whole, gradient + head.output, head.output_row, query, dy);
    load_statistics(op, head, query, statistics);
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
    store_sums<STEPS>(head, (struct bfloat16 *)op.dqkv + head.query, head.qkv_row, query, sums);
}

template <int STEPS>
static __global__ void __launch_bounds__(TILE_WARPS *WARP) each_key_tile(struct attention_backward op, bool whole)
{
    extern __shared__ __align__(16) float shared[];
    const struct attention_head head = attention_head(op.t, op.c, op.heads, blockIdx.y);
    const struct bfloat16 *qkv = (const struct bfloat16 *)op.qkv, *gradient = (const struct bfloat16 *)op.dy;
    struct bfloat16 *to = (struct bfloat16 *)op.dqkv;
    struct bfloat16 *keys = (struct bfloat16 *)shared, *value_rows = keys + ROW_TILE(STEPS);
    struct bfloat16 *queries = value_rows + ROW_TILE(STEPS), *dy = queries + ROW_TILE(STEPS);
    struct bfloat16 *turned_queries = dy + ROW_TILE(STEPS), *turned_dy = turned_queries + TURNED_TILE(STEPS);
    const struct row_statistics statistics = statistics_behind(turned_dy + TURNED_TILE(STEPS));
    const int64_t key = (int64_t)blockIdx.x * ATTENTION_TILE;
    float dkeys[2 * STEPS][4] = {}, dvalues[2 * STEPS][4] = {};
    load_rows<STEPS>(head, whole, qkv + head.key, head.qkv_row, key, keys);
    load_rows<STEPS>(head, whole, qkv + head.value, head.qkv_row, key, value_rows);
    for (int64_t query = key; query < op.t; query += ATTENTION_TILE) {
        float scores[KEY_TILES][4] = {}, dscores[KEY_TILES][4] = {};
        load_rows<STEPS>(head, whole, qkv + head.query, head.qkv_row, query, queries);
        load_rows<STEPS>(head, whole, gradient + head.output, head.output_row, query, dy);
        load_turned<STEPS>(head, qkv + head.query, head.qkv_row, query, turned_queries);
        load_turned<STEPS>(head, gradient + head.output, head.output_row, query, turned_dy);
        load_statistics(op, head, query, statistics);
        __syncthreads();
        multiply_tiles<STEPS>(keys, queries, scores);
        multiply_tiles<STEPS>(value_rows, dy, dscores);
        weigh(head, query, key, true, statistics, scores, dscores);
        multiply_turned<STEPS>(scores, turned_dy, dvalues);
        multiply_turned<STEPS>(dscores, turned_queries, dkeys);
        __syncthreads();
    }
    store_sums<STEPS>(head, to + head.key, head.qkv_row, key, dkeys);
    store_sums<STEPS>(head, to + head.value, head.qkv_row, key, dvalues);
}

template <int STEPS> static void launch(const struct cuda_call *call, const struct attention_backward *op)
{
    const bool whole = heads_are_whole(op->c, op->heads, op->qkv, op->dy);
    const size_t of_queries = 4 * ROW_TILE(STEPS) + TURNED_TILE(STEPS), of_keys = of_queries + TURNED_TILE(STEPS);
    launch_tiles(call, *op, each_query_tile<STEPS>, whole, of_queries * sizeof(struct bfloat16) + STATISTICS_BYTES);
    launch_tiles(call, *op, each_key_tile<STEPS>, whole, of_keys * sizeof(struct bfloat16) + STATISTICS_BYTES);
}

void attention_backward_bfloat16(const struct cuda_call *call, const struct attention_backward *op)
{
    switch (attention_columns(call, op->c, op->heads)) {
    case 2:
        launch<2>(call, op);
        break;
    case 4:
        launch<4>(call, op);
        break;
    case 8:
        launch<8>(call, op);
        break;
    }
}
