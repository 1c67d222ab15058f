/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/attention_tensor.cuh"

/* The state of a row of queries after the keys seen so far: the largest score, the sum of powers, the weighted values. */
template <int COLUMNS> struct row_state {
    float maximum[ATTENTION_SHARE], sum[ATTENTION_SHARE], output[ATTENTION_SHARE][COLUMNS];
};

/* Scores become powers against the row's new maximum; what was summed before is brought to it. */
template <int COLUMNS>
static __device__ void absorb(const struct attention_head &head, int64_t query, int64_t key,
                              float scores[ATTENTION_SHARE][ATTENTION_SHARE], struct row_state<COLUMNS> *state)
{
#pragma unroll
    for (int i = 0; i < ATTENTION_SHARE; i++) {
        const int64_t row = query + threadIdx.y * ATTENTION_SHARE + i;
        float maximum = -INFINITY, sum = 0;
#pragma unroll
        for (int j = 0; j < ATTENTION_SHARE; j++) {
            const int64_t column = key + threadIdx.x * ATTENTION_SHARE + j;
            scores[i][j] = column <= row && column < head.t ? scores[i][j] * head.scale : -INFINITY;
            maximum = fmaxf(maximum, scores[i][j]);
        }
        maximum = fmaxf(state->maximum[i], row_maximum<ATTENTION_SIDE>(maximum));
        const float shrink = expf(state->maximum[i] - maximum);
#pragma unroll
        for (int j = 0; j < ATTENTION_SHARE; j++) {
            scores[i][j] = expf(scores[i][j] - maximum);
            sum += scores[i][j];
        }
        state->sum[i] = state->sum[i] * shrink + row_sum<ATTENTION_SIDE>(sum);
        state->maximum[i] = maximum;
#pragma unroll
        for (int j = 0; j < COLUMNS; j++)
            state->output[i][j] *= shrink;
    }
}

template <int COLUMNS>
static __device__ void finish(const struct attention_forward &op, const struct attention_head &head, int64_t query,
                              struct row_state<COLUMNS> *state)
{
    for (int i = 0; i < ATTENTION_SHARE; i++) {
        const int64_t row = query + threadIdx.y * ATTENTION_SHARE + i;
        const float share = 1.0f / state->sum[i];
        for (int j = 0; j < COLUMNS; j++)
            state->output[i][j] *= share;
        if (threadIdx.x == 0 && row < head.t)
            op.logsumexp[head.statistics + row] = state->maximum[i] + logf(state->sum[i]);
    }
    store_rows<COLUMNS>(head, op.y + head.output, head.output_row, query, state->output);
}

/* Lean: values come to where the keys were. */
template <int COLUMNS, bool LEAN> static __global__ void each_query_tile(struct attention_forward op)
{
    extern __shared__ __align__(16) float shared[];
    const struct attention_head head = attention_head(op.t, op.c, op.heads, attention_number(op.t));
    const int keys_floats = LEAN ? tile_in_turn(head.width, COLUMNS) : tile_by_column(head.width);
    float *queries = shared, *keys = queries + tile_by_column(head.width);
    float *values = LEAN ? keys : keys + keys_floats;
    float *powers = keys + keys_floats + (LEAN ? 0 : tile_by_row(COLUMNS));
    const int64_t query = first_query(op.t);
    struct row_state<COLUMNS> state = {
    };
    for (int i = 0; i < ATTENTION_SHARE; i++)
        state.maximum[i] = -INFINITY;
    load_tile<COLUMNS>(head, op.qkv + head.query, head.qkv_row, query, queries, NULL);
    for (int64_t key = 0; key <= query; key += ATTENTION_TILE) {
        float scores[ATTENTION_SHARE][ATTENTION_SHARE] = {};
        load_tile<COLUMNS>(head, op.qkv + head.key, head.qkv_row, key, keys, NULL);
        if (!LEAN)
            load_tile<COLUMNS>(head, op.qkv + head.value, head.qkv_row, key, NULL, values);
        __syncthreads();
        multiply_rows(head, queries, keys, scores);
        absorb<COLUMNS>(head, query, key, scores, &state);
        store_by_key(powers, scores);
        __syncthreads();
        if (LEAN) {
            load_tile<COLUMNS>(head, op.qkv + head.value, head.qkv_row, key, NULL, values);
            __syncthreads();
        }
        multiply_scores<COLUMNS>(powers, values, state.output);
        __syncthreads();
    }
    finish<COLUMNS>(op, head, query, &state);
}

template <int COLUMNS> static void launch(const struct cuda_call *call, const struct attention_forward *op)
{
    const int64_t width = op->c / op->heads;
    const attention_needs needs = {attention_bytes(width, COLUMNS, 2, 1, 0), attention_bytes(width, COLUMNS, 1, 0, 1)};
    launch_fitting(call, attention_blocks(*op), dim3(ATTENTION_SIDE, ATTENTION_SIDE), needs,
                   each_query_tile<COLUMNS, false>, each_query_tile<COLUMNS, true>, *op);
}

void cuda_attention_forward(const struct cuda_call *call, const struct attention_forward *op)
{
    if (call->stored != STORED_FLOAT32) {
        attention_forward_tensor(call, op);
        return;
    }
    BY_COLUMNS(launch, call, op);
}
