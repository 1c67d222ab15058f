/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of attention: a kernel for those of queries, then one for those of keys
 * and values. The first also leaves what the second has to know of each row of
 * queries, so that this is computed once.
 */
#include "worker/device/cuda/attention_tensor.cuh"

/* Scores are computed for a slice of a tile at a time: this many times eight rows of the other factor, so that the sums of two strips
 * stay in registers. The order of the sums does not depend on it. */
#define KEY_SLICE 4
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define QUERY_SLICE 2 /* its compiler would spill with more */
#else
#define QUERY_SLICE 4
#endif

/* Values of a row of queries: its softmax weights are 2^(score factor + shift); dot is the sum of dy y, divided by sqrt(width). */
struct alignas(8) row_knowledge {
    float shift, dot;
};

/* One launch: heads from number `first_head` on. `knowledge` has a row for each of their queries. */
struct attention_part {
    struct attention_backward op;
    int64_t first_head;
    struct row_knowledge *knowledge;
    bool whole;
};

/* The heads of a launch have their rows of knowledge side by side. */
static __device__ inline struct row_knowledge *knowledge_of(const struct attention_part &part, int64_t number)
{
    return part.knowledge + number * part.op.t;
}

/* ---------------------------------------------------------------- queries */

/* Eight values from column `column` on, zeros behind the width. */
template <typename Stored>
static __device__ inline element_pack<Stored> read_piece(const head_rows<const Stored> &rows, int row, int column)
{
    const Stored *from = rows.start + row * rows.row + column;
    element_pack<Stored> piece = {};
    if (row >= rows.count || column >= rows.width)
        return piece;
    if (rows.whole)
        return *(const element_pack<Stored> *)from;
    for (int i = 0; i < PIECE && column + i < rows.width; i++)
        piece.at[i] = from[i];
    return piece;
}

/* Computes these values for the warp's rows, which begin with `first`, and writes them to the block's memory and to the GPU's. Adjacent
 * lanes hold pieces of a row. */
template <int STEPS, int STRIPS, typename Stored>
static __device__ inline void learn_rows(const struct attention_part &part, const struct attention_head &head,
                                         int64_t number, const head_rows<const Stored> &dy, int first,
                                         struct row_knowledge *own)
{
    const int lanes = 2 * STEPS, at_once = WARP / lanes; /* of a row; rows */
    const head_rows<const Stored> y =
        rows_at(head, (const Stored *)part.op.y + head.output, head.output_row, part.whole);
    const int lane = lane_number(), column = lane % lanes * PIECE;
    for (int i = lane / lanes; i < STRIPS * STRIP_ROWS; i += at_once) {
        const int row = first + i;
        const element_pack<Stored> some = read_piece(y, row, column), others = read_piece(dy, row, column);
        float dot = 0;
#pragma unroll
        for (int k = 0; k < PIECE; k++)
            dot = fmaf(widen(some.at[k]), widen(others.at[k]), dot);
        dot = row_sum<lanes>(dot);
        if (lane % lanes > 0)
            continue;
        const bool there = row < head.t;
        own[i] = {there ? -part.op.logsumexp[head.statistics + row] * LOG2_E : 0, dot * head.scale};
        if (there)
            knowledge_of(part, number)[row] = own[i];
    }
    __syncwarp();
}

/* Scores become softmax weights P, and dscores, which are dP, become dS = P (dP scale - dot), scale = 1 / sqrt(width): it is rounded as
 * a factor, and without the scale a float16 would overflow earlier. Rows are queries. */
static __device__ inline void weigh_rows(float factor, float scale, const struct row_knowledge rows[2],
                                         float scores[KEY_SLICE][4], float dscores[KEY_SLICE][4])
{
#pragma unroll
    for (int j = 0; j < KEY_SLICE; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const struct row_knowledge &query = rows[i / 2];
            scores[j][i] = quick_power(fmaf(scores[j][i], factor, query.shift));
            dscores[j][i] = scores[j][i] * fmaf(dscores[j][i], scale, -query.dot);
        }
}

/* A warp's rows of queries, which it holds while keys pass by. There are no registers left to hold dy as factors, too. */
template <int STEPS, int STRIPS, typename Stored> struct query_strips {
    int first;
    float factor, scale;
    const Stored *dy;
    strip_factors<STEPS, STRIPS> queries;
    struct row_knowledge knowledge[STRIPS][2];
    float sums[STRIPS][2 * STEPS][4];
};

/* Adds what one tile of keys gives them. */
template <int STEPS, int STRIPS, typename Stored>
static __device__ inline void add_keys(int key, const Stored *keys, const Stored *value_rows,
                                       query_strips<STEPS, STRIPS, Stored> *own)
{
#pragma unroll
    for (int slice = 0; slice < ATTENTION_TILE; slice += KEY_SLICE * 8) {
        const int at = slice * ROW_PITCH(STEPS);
        float scores[STRIPS][KEY_SLICE][4] = {}, dscores[STRIPS][KEY_SLICE][4] = {};
        if (key + slice >= own->first + STRIPS * STRIP_ROWS)
            continue; /* they have seen none of these */
        multiply_rows<STEPS, STRIPS, KEY_SLICE>(own->queries, keys + at, scores);
        multiply_rows<STEPS, STRIPS, KEY_SLICE>(own->dy, value_rows + at, dscores);
#pragma unroll
        for (int s = 0; s < STRIPS; s++) {
            const int row = own->first + s * STRIP_ROWS;
            if (key + slice + KEY_SLICE * 8 > row)
                hide_future<false, KEY_SLICE>(row, key + slice, scores[s]);
            weigh_rows(own->factor, own->scale, own->knowledge[s], scores[s], dscores[s]);
        }
        multiply_scores_by<STEPS, STRIPS, KEY_SLICE>(dscores, keys + at, own->sums);
    }
}

template <int STEPS, int STRIPS, int STAGES, typename Stored>
static __global__ void __launch_bounds__(TILE_THREADS) each_query_tile(struct attention_part part)
{
    extern __shared__ __align__(16) float shared[];
    const struct attention_backward &op = part.op;
    const int block_rows = BLOCK_ROWS(STRIPS), tile = ROW_TILE(STEPS, ATTENTION_TILE);
    const int64_t number = attention_number(op.t, block_rows);
    const struct attention_head head = attention_head(op.t, op.c, op.heads, part.first_head + number);
    const Stored *qkv = (const Stored *)op.qkv;
    const head_rows<const Stored> keys = rows_at(head, qkv + head.key, head.qkv_row, part.whole);
    const head_rows<const Stored> value_rows = rows_at(head, qkv + head.value, head.qkv_row, part.whole);
    const head_rows<const Stored> gradient =
        rows_at(head, (const Stored *)op.dy + head.output, head.output_row, part.whole);
    Stored *queries = (Stored *)shared, *dy = queries + ROW_TILE(STEPS, block_rows);
    Stored *tiles = dy + ROW_TILE(STEPS, block_rows);
    struct row_knowledge *rows = (struct row_knowledge *)(tiles + STAGES * 2 * tile);
    const int query = (int)first_query(op.t, block_rows), end = min(query + block_rows, keys.count);
    const int offset = (int)threadIdx.y * STRIPS * STRIP_ROWS; /* of the warp's rows */
    query_strips<STEPS, STRIPS, Stored> own = {};
    own.first = query + offset;
    own.factor = power_factor(head);
    own.scale = head.scale;
    own.dy = dy + offset * ROW_PITCH(STEPS);

    const auto bring = [&](int first, int stage) {
        load_rows<STEPS, ATTENTION_TILE>(keys, first, tiles + stage * 2 * tile);
        load_rows<STEPS, ATTENTION_TILE>(value_rows, first, tiles + stage * 2 * tile + tile);
        close_copies();
    };
    load_rows<STEPS, block_rows>(rows_at(head, qkv + head.query, head.qkv_row, part.whole), query, queries);
    load_rows<STEPS, block_rows>(gradient, query, dy);
    bring(0, 0);
    learn_rows<STEPS, STRIPS>(part, head, number, gradient, query + offset, rows + offset);
#pragma unroll
    for (int s = 0; s < STRIPS; s++)
#pragma unroll
        for (int half = 0; half < 2; half++)
            own.knowledge[s][half] = rows[offset + s * STRIP_ROWS + half * 8 + lane_number() / 4];
    queries += offset * ROW_PITCH(STEPS);
    for (int key = 0, stage = 0; key < end; key += ATTENTION_TILE, stage = STAGES - 1 - stage) {
        if (STAGES == 1 && key > 0) {
            __syncthreads();
            bring(key, 0);
        }
        await_copies();
        __syncthreads(); /* all are through with the other stage, too */
        if (STAGES == 2 && key + ATTENTION_TILE < end)
            bring(key + ATTENTION_TILE, 1 - stage);
        if (key == 0)
            keep_strips(queries, &own.queries);
        const Stored *here = tiles + stage * 2 * tile;
        add_keys<STEPS, STRIPS>(key, here, here + tile, &own);
    }
    store_strips<STEPS, STRIPS>(rows_at(head, (Stored *)op.dqkv + head.query, head.qkv_row, part.whole), own.first,
                                queries, own.sums);
}

/* ---------------------------------------------------------------- keys and values */

/* The same with queries as columns: a lane has two neighbours of each eight. */
static __device__ inline void weigh_columns(float factor, float scale, const struct row_knowledge *columns,
                                            float scores[QUERY_SLICE][4], float dscores[QUERY_SLICE][4])
{
#pragma unroll
    for (int j = 0; j < QUERY_SLICE; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const struct row_knowledge &query = columns[j * 8 + lane_number() % 4 * 2 + i % 2];
            scores[j][i] = quick_power(fmaf(scores[j][i], factor, query.shift));
            dscores[j][i] = scores[j][i] * fmaf(dscores[j][i], scale, -query.dot);
        }
}

/* A warp's rows of keys and values, which it holds while queries pass by. */
template <int STEPS, int STRIPS, typename Stored> struct key_strips {
    int first;
    float factor, scale;
    const Stored *keys, *value_rows;
    float dkeys[STRIPS][2 * STEPS][4], dvalues[STRIPS][2 * STEPS][4];
};

/* Adds what one tile of queries gives them. */
template <int STEPS, int STRIPS, typename Stored>
static __device__ inline void add_queries(int query, const Stored *queries, const Stored *dy,
                                          const struct row_knowledge *knowledge, key_strips<STEPS, STRIPS, Stored> *own)
{
#pragma unroll
    for (int slice = 0; slice < ATTENTION_TILE; slice += QUERY_SLICE * 8) {
        const int at = slice * ROW_PITCH(STEPS);
        float scores[STRIPS][QUERY_SLICE][4] = {}, dscores[STRIPS][QUERY_SLICE][4] = {};
        if (query + slice + QUERY_SLICE * 8 <= own->first)
            continue; /* none of these has seen them */
        multiply_rows<STEPS, STRIPS, QUERY_SLICE>(own->keys, queries + at, scores);
        multiply_rows<STEPS, STRIPS, QUERY_SLICE>(own->value_rows, dy + at, dscores);
#pragma unroll
        for (int s = 0; s < STRIPS; s++) {
            const int row = own->first + s * STRIP_ROWS;
            if (query + slice < row + STRIP_ROWS)
                hide_future<true, QUERY_SLICE>(row, query + slice, scores[s]);
            weigh_columns(own->factor, own->scale, knowledge + slice, scores[s], dscores[s]);
        }
        multiply_scores_by<STEPS, STRIPS, QUERY_SLICE>(scores, dy + at, own->dvalues);
        multiply_scores_by<STEPS, STRIPS, QUERY_SLICE>(dscores, queries + at, own->dkeys);
    }
}

static __device__ inline void load_knowledge(const struct row_knowledge *from, int first, int count,
                                             struct row_knowledge *to)
{
    const int i = tile_thread_number();
    if (i < ATTENTION_TILE)
        copy_ahead<sizeof *from>(to + i, from + first + i, first + i < count);
}

template <int STEPS, int STRIPS, int STAGES, typename Stored>
static __global__ void __launch_bounds__(TILE_THREADS) each_key_tile(struct attention_part part)
{
    extern __shared__ __align__(16) float shared[];
    const struct attention_backward &op = part.op;
    const int block_rows = BLOCK_ROWS(STRIPS), tile = ROW_TILE(STEPS, ATTENTION_TILE);
    const int64_t number = attention_number(op.t, block_rows);
    const struct attention_head head = attention_head(op.t, op.c, op.heads, part.first_head + number);
    const Stored *qkv = (const Stored *)op.qkv;
    Stored *to = (Stored *)op.dqkv;
    const head_rows<const Stored> queries = rows_at(head, qkv + head.query, head.qkv_row, part.whole);
    const head_rows<const Stored> dy = rows_at(head, (const Stored *)op.dy + head.output, head.output_row, part.whole);
    const struct row_knowledge *from = knowledge_of(part, number);
    Stored *keys = (Stored *)shared, *value_rows = keys + ROW_TILE(STEPS, block_rows);
    Stored *tiles = value_rows + ROW_TILE(STEPS, block_rows);
    struct row_knowledge *knowledge = (struct row_knowledge *)(tiles + STAGES * 2 * tile);
    const int key = (int)attention_tile(op.t, block_rows) * block_rows;
    const int offset = (int)threadIdx.y * STRIPS * STRIP_ROWS; /* of the warp's rows */

    const auto bring = [&](int first, int stage) {
        load_rows<STEPS, ATTENTION_TILE>(queries, first, tiles + stage * 2 * tile);
        load_rows<STEPS, ATTENTION_TILE>(dy, first, tiles + stage * 2 * tile + tile);
        load_knowledge(from, first, queries.count, knowledge + stage * ATTENTION_TILE);
        close_copies();
    };
    load_rows<STEPS, block_rows>(rows_at(head, qkv + head.key, head.qkv_row, part.whole), key, keys);
    load_rows<STEPS, block_rows>(rows_at(head, qkv + head.value, head.qkv_row, part.whole), key, value_rows);
    bring(key, 0);
    keys += offset * ROW_PITCH(STEPS);
    value_rows += offset * ROW_PITCH(STEPS);
    key_strips<STEPS, STRIPS, Stored> own = {};
    own.first = key + offset;
    own.factor = power_factor(head);
    own.scale = head.scale;
    own.keys = keys;
    own.value_rows = value_rows;
    for (int query = key, stage = 0; query < queries.count; query += ATTENTION_TILE, stage = STAGES - 1 - stage) {
        if (STAGES == 1 && query > key) {
            __syncthreads();
            bring(query, 0);
        }
        await_copies();
        __syncthreads(); /* all are through with the other stage, too */
        if (STAGES == 2 && query + ATTENTION_TILE < queries.count)
            bring(query + ATTENTION_TILE, 1 - stage);
        const Stored *here = tiles + stage * 2 * tile;
        add_queries<STEPS, STRIPS>(query, here, here + tile, knowledge + stage * ATTENTION_TILE, &own);
    }
    store_strips<STEPS, STRIPS>(rows_at(head, to + head.key, head.qkv_row, part.whole), own.first, keys, own.dkeys);
    store_strips<STEPS, STRIPS>(rows_at(head, to + head.value, head.qkv_row, part.whole), own.first, value_rows,
                                own.dvalues);
}

/* ---------------------------------------------------------------- launches */

/* Returns the shared memory of either kernel: its own rows of two factors, one tile per stage of the two others, and the values of rows
 * of queries, the block's or each stage's. */
static size_t bytes_of(int steps, int strips, int stages)
{
    const size_t tiles = 2 * (size_t)ROW_TILE(steps, BLOCK_ROWS(strips)) + 2 * stages * ROW_TILE(steps, ATTENTION_TILE);
    return tiles * sizeof(uint16_t) + 2 * ATTENTION_TILE * sizeof(struct row_knowledge);
}

size_t attention_backward_tensor_bytes(int steps)
{
    return bytes_of(steps, 1, IS_WIDE(steps) ? 1 : 2);
}

template <int STEPS, int STRIPS, int STAGES, typename Stored>
static void launch_heads(const struct cuda_call *call, const struct attention_part &part, int64_t heads)
{
    const unsigned blocks = attention_tile_count(part.op.t, BLOCK_ROWS(STRIPS)) * (unsigned)heads;
    const dim3 threads(WARP, TILE_WARPS);
    const size_t bytes = bytes_of(STEPS, STRIPS, STAGES);
    launch_attention(call, blocks, threads, bytes, each_query_tile<STEPS, STRIPS, STAGES, Stored>, part);
    launch_attention(call, blocks, threads, bytes, each_key_tile<STEPS, STRIPS, STAGES, Stored>, part);
}

/* Not every GPU has shared memory for two stages of wide heads, nor, if none of today, for two strips. */
template <int STEPS, typename Stored>
static void launch_some(const struct cuda_call *call, const struct attention_part &part, int64_t heads, bool two)
{
    if constexpr (!IS_WIDE(STEPS)) {
        if (two && bytes_of(STEPS, 2, 2) <= call->shared_bytes)
            launch_heads<STEPS, 2, 2, Stored>(call, part, heads);
        else
            launch_heads<STEPS, 1, 2, Stored>(call, part, heads);
    } else if (bytes_of(STEPS, 1, 2) <= call->shared_bytes)
        launch_heads<STEPS, 1, 2, Stored>(call, part, heads);
    else
        launch_heads<STEPS, 1, 1, Stored>(call, part, heads);
}

/* As many heads at once as the scratch has room for what is known of their rows. */
template <int STEPS, typename Stored>
static void launch_of(const struct cuda_call *call, const struct attention_backward *op)
{
    const int64_t heads = op->b * op->heads,
                  at_once = CUDA_SCRATCH_BYTES / (op->t * (int64_t)sizeof(struct row_knowledge));
    const bool whole =
        heads_are_whole(op->c, op->heads, op->qkv, op->dqkv) && heads_are_whole(op->c, op->heads, op->y, op->dy);
    for (int64_t first = 0; first < heads; first += at_once) {
        const struct attention_part part = {*op, first, (struct row_knowledge *)call->scratch, whole};
        launch_some<STEPS, Stored>(call, part, min(at_once, heads - first), two_strips(op->b, op->heads, op->t));
    }
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
