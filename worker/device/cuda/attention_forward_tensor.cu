/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/attention_tensor.cuh"

/* What a lane knows of its two rows after the keys seen so far: the largest score, the sum of powers, the weighted
 * values. */
template <int STEPS> struct lane_state {
    float maximum[2], sum[2], output[2 * STEPS][4];
};

/* Scores become powers against the row's new maximum; what was summed before is brought to it. */
template <int STEPS>
static __device__ void absorb(const struct attention_head &head, int64_t query, int64_t key,
                              float scores[KEY_TILES][4], struct lane_state<STEPS> *state)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float maximum = -INFINITY, sum = 0;
#pragma unroll
        for (int j = 0; j < KEY_TILES; j++)
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; i++) {
                const int64_t row = query + sum_row(i), column = key + sum_column(j, i);
                scores[j][i] = column <= row && column < head.t ? scores[j][i] * head.scale : -INFINITY;
                maximum = fmaxf(maximum, scores[j][i]);
            }
        maximum = fmaxf(state->maximum[half], row_maximum<ROW_LANES>(maximum));
        const float shrink = expf(state->maximum[half] - maximum);
#pragma unroll
        for (int j = 0; j < KEY_TILES; j++)
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; i++) {
                scores[j][i] = expf(scores[j][i] - maximum);
                sum += scores[j][i];
            }
        state->sum[half] = state->sum[half] * shrink + row_sum<ROW_LANES>(sum);
        state->maximum[half] = maximum;
#pragma unroll
        for (int j = 0; j < 2 * STEPS; j++) {
            state->output[j][2 * half] *= shrink;
            state->output[j][2 * half + 1] *= shrink;
        }
    }
}

template <int STEPS, typename Stored>
static __device__ void finish(const struct attention_forward &op, const struct attention_head &head, int64_t query,
                              struct lane_state<STEPS> *state)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int64_t row = query + sum_row(2 * half);
        const float share = 1.0f / state->sum[half];
#pragma unroll
        for (int j = 0; j < 2 * STEPS; j++) {
            state->output[j][2 * half] *= share;
            state->output[j][2 * half + 1] *= share;
        }
        if (threadIdx.x % 4 == 0 && row < head.t)
            op.logsumexp[head.statistics + row] = state->maximum[half] + logf(state->sum[half]);
    }
    store_sums<STEPS>(head, (Stored *)op.y + head.output, head.output_row, query, state->output);
}

/* The longest rows of tiles come first. */
template <int STEPS, typename Stored>
static __global__ void __launch_bounds__(TILE_WARPS *WARP) each_query_tile(struct attention_forward op, bool whole)
{
    extern __shared__ __align__(16) float shared[];
    const struct attention_head head = attention_head(op.t, op.c, op.heads, attention_number(op.t));
    const Stored *qkv = (const Stored *)op.qkv;
    Stored *queries = (Stored *)shared, *keys = queries + ROW_TILE(STEPS);
    Stored *turned_values = keys + ROW_TILE(STEPS);
    const int64_t query = first_query(op.t);
    struct lane_state<STEPS> state = {};
    state.maximum[0] = state.maximum[1] = -INFINITY;
    load_rows<STEPS>(head, whole, qkv + head.query, head.qkv_row, query, queries);
    for (int64_t key = 0; key <= query; key += ATTENTION_TILE) {
        float scores[KEY_TILES][4] = {};
        load_rows<STEPS>(head, whole, qkv + head.key, head.qkv_row, key, keys);
        load_turned<STEPS>(head, qkv + head.value, head.qkv_row, key, turned_values);
        __syncthreads();
        multiply_tiles<STEPS>(queries, keys, scores);
        absorb<STEPS>(head, query, key, scores, &state);
        multiply_turned<STEPS>(scores, turned_values, state.output);
        __syncthreads();
    }
    finish<STEPS, Stored>(op, head, query, &state);
}

template <int STEPS, typename Stored>
static void launch_of(const struct cuda_call *call, const struct attention_forward *op)
{
    const size_t elements = 2 * ROW_TILE(STEPS) + TURNED_TILE(STEPS);
    launch_attention(call, *op, dim3(WARP, TILE_WARPS), elements * sizeof(Stored), each_query_tile<STEPS, Stored>,
                     heads_are_whole(op->c, op->heads, op->qkv, op->qkv));
}

template <int STEPS> static void launch(const struct cuda_call *call, const struct attention_forward *op)
{
    if (call->stored == STORED_FLOAT16)
        launch_of<STEPS, struct float16>(call, op);
    else
        launch_of<STEPS, struct bfloat16>(call, op);
}

void attention_forward_tensor(const struct cuda_call *call, const struct attention_forward *op)
{
    BY_COLUMNS(launch, call, op);
}
