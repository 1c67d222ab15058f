/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/attention_tensor.cuh"

#define KEY_TILES (ATTENTION_TILE / 8) /* of scores, side by side */

/* A lane's state of its two rows of a strip after the keys seen so far: the largest score, and its part of the sum of powers. */
struct strip_state {
    float maximum[2], sum[2];
};

/* Scores become powers against the row's new maximum; what was summed before is brought to it. */
template <int STEPS>
static __device__ inline void absorb(float factor, float scores[KEY_TILES][4], struct strip_state *state,
                                     float output[2 * STEPS][4])
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float maximum = state->maximum[half], sum = 0;
#pragma unroll
        for (int j = 0; j < KEY_TILES; j++)
            maximum = fmaxf(maximum, fmaxf(scores[j][2 * half], scores[j][2 * half + 1]));
        maximum = row_maximum<ROW_LANES>(maximum);
        const float shift = -maximum * factor;
        const float shrink = quick_power(fmaf(state->maximum[half], factor, shift));
#pragma unroll
        for (int j = 0; j < KEY_TILES; j++)
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; i++) {
                scores[j][i] = quick_power(fmaf(scores[j][i], factor, shift));
                sum += scores[j][i];
            }
        state->sum[half] = fmaf(state->sum[half], shrink, sum);
        state->maximum[half] = maximum;
#pragma unroll
        for (int j = 0; j < 2 * STEPS; j++) {
            output[j][2 * half] *= shrink;
            output[j][2 * half + 1] *= shrink;
        }
    }
}

/* `first`: the strip's first row. */
template <int STEPS>
static __device__ inline void finish(const struct attention_forward &op, const struct attention_head &head, int first,
                                     const struct strip_state &state, float output[2 * STEPS][4])
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = first + half * 8 + lane_number() / 4;
        const float sum = row_sum<ROW_LANES>(state.sum[half]), share = 1.0f / sum;
#pragma unroll
        for (int j = 0; j < 2 * STEPS; j++) {
            output[j][2 * half] *= share;
            output[j][2 * half + 1] *= share;
        }
        if (lane_number() % 4 == 0 && row < head.t)
            op.logsumexp[head.statistics + row] = state.maximum[half] * head.scale + logf(sum);
    }
}

/* Keys and values have two tiles: the one that is multiplied, and the one that is being loaded. */
#define FORWARD_ELEMENTS(steps, strips) (ROW_TILE(steps, BLOCK_ROWS(strips)) + 4 * ROW_TILE(steps, ATTENTION_TILE))

/* The longest rows of tiles come first. */
template <int STEPS, int STRIPS, typename Stored>
static __global__ void __launch_bounds__(TILE_THREADS) each_query_tile(struct attention_forward op, bool whole)
{
    extern __shared__ __align__(16) float shared[];
    const int block_rows = BLOCK_ROWS(STRIPS), tile = ROW_TILE(STEPS, ATTENTION_TILE);
    const struct attention_head head = attention_head(op.t, op.c, op.heads, attention_number(op.t, block_rows));
    const Stored *qkv = (const Stored *)op.qkv;
    const head_rows<const Stored> keys = rows_at(head, qkv + head.key, head.qkv_row, whole);
    const head_rows<const Stored> value_rows = rows_at(head, qkv + head.value, head.qkv_row, whole);
    Stored *queries = (Stored *)shared, *tiles = queries + ROW_TILE(STEPS, block_rows);
    const int query = (int)first_query(op.t, block_rows), end = min(query + block_rows, keys.count);
    const int first = query + (int)threadIdx.y * STRIPS * STRIP_ROWS; /* of the warp's */
    Stored *own = queries + (first - query) * ROW_PITCH(STEPS);
    struct strip_state state[STRIPS];
    float output[STRIPS][2 * STEPS][4] = {};
    for (int s = 0; s < STRIPS; s++)
        state[s] = {{-INFINITY, -INFINITY}, {0, 0}};

    load_rows<STEPS, block_rows>(rows_at(head, qkv + head.query, head.qkv_row, whole), query, queries);
    load_rows<STEPS, ATTENTION_TILE>(keys, 0, tiles);
    load_rows<STEPS, ATTENTION_TILE>(value_rows, 0, tiles + tile);
    close_copies();
    for (int key = 0, stage = 0; key < end; key += ATTENTION_TILE, stage ^= 1) {
        const Stored *here = tiles + stage * 2 * tile;
        await_copies();
        __syncthreads(); /* all are through with the other stage, too */
        if (key + ATTENTION_TILE < end) {
            Stored *next = tiles + (stage ^ 1) * 2 * tile;
            load_rows<STEPS, ATTENTION_TILE>(keys, key + ATTENTION_TILE, next);
            load_rows<STEPS, ATTENTION_TILE>(value_rows, key + ATTENTION_TILE, next + tile);
            close_copies();
        }
        if (key >= first + STRIPS * STRIP_ROWS)
            continue; /* the warp's queries have seen none of these */
        float scores[STRIPS][KEY_TILES][4] = {};
        multiply_rows<STEPS, STRIPS, KEY_TILES>(own, here, scores);
#pragma unroll
        for (int s = 0; s < STRIPS; s++) {
            if (key + ATTENTION_TILE > first + s * STRIP_ROWS)
                hide_future<false, KEY_TILES>(first + s * STRIP_ROWS, key, scores[s]);
            absorb<STEPS>(power_factor(head), scores[s], &state[s], output[s]);
        }
        multiply_scores_by<STEPS, STRIPS, KEY_TILES>(scores, here + tile, output);
    }
    for (int s = 0; s < STRIPS; s++)
        finish<STEPS>(op, head, first + s * STRIP_ROWS, state[s], output[s]);
    store_strips<STEPS, STRIPS>(rows_at(head, (Stored *)op.y + head.output, head.output_row, whole), first, own,
                                output);
}

size_t attention_forward_tensor_bytes(int steps)
{
    return FORWARD_ELEMENTS(steps, 1) * sizeof(uint16_t);
}

template <int STEPS, int STRIPS, typename Stored>
static void launch_strips(const struct cuda_call *call, const struct attention_forward *op)
{
    launch_attention(call, attention_blocks(*op, BLOCK_ROWS(STRIPS)), dim3(WARP, TILE_WARPS),
                     FORWARD_ELEMENTS(STEPS, STRIPS) * sizeof(Stored), each_query_tile<STEPS, STRIPS, Stored>, *op,
                     heads_are_whole(op->c, op->heads, op->qkv, op->y));
}

template <int STEPS, typename Stored>
static void launch_of(const struct cuda_call *call, const struct attention_forward *op)
{
    if constexpr (!IS_WIDE(STEPS)) {
        if (two_strips(op->b, op->heads, op->t)) {
            launch_strips<STEPS, 2, Stored>(call, op);
            return;
        }
    }
    launch_strips<STEPS, 1, Stored>(call, op);
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
