/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes attention of two-byte values: tiles as in attention.cuh, multiplied on tensor cores. A
 * block of four warps has 64 or 128 rows of one factor; each warp has one or two strips of 16 of
 * them, and keeps their scores and sums in registers. Rows of the other factor are read 64 at a
 * time, copied ahead while the ones before are multiplied. Softmax weights and their gradients are
 * rounded to the stored type when they are factors. A row's result does not depend on the other
 * rows of its block.
 *
 * Powers are of two: a score s becomes 2^(s factor + shift), factor = log2(e) / sqrt(width), in
 * one fused multiply-add and one instruction of the GPU (Dao 2023; Milakov and Gimelshein 2018 for
 * the running maximum).
 *
 * Tiles lie in shared memory by row, padded with zeros to 16 STEPS columns; products that run over
 * rows read them transposed. The pitch puts the eight rows of a matrix into different banks.
 */
#ifndef COXSWAIN_DEVICE_CUDA_ATTENTION_TENSOR_CUH
#define COXSWAIN_DEVICE_CUDA_ATTENTION_TENSOR_CUH

#include "worker/device/cuda/attention.cuh"
#include "worker/device/cuda/quick_math.cuh"
#include "worker/device/cuda/tensor_core.cuh"

#define STRIP_ROWS 16
#define TILE_WARPS 4
#define TILE_THREADS (TILE_WARPS * WARP)
#define BLOCK_ROWS(strips) (TILE_WARPS * STRIP_ROWS * (strips))
#define ROW_PITCH(steps) ((steps)*16 + 8)
#define ROW_TILE(steps, rows) ((rows)*ROW_PITCH(steps)) /* elements */
#define ROW_LANES 4                                     /* lanes that hold parts of a row's sums */
#define PIECE 8                                         /* values in 16 bytes */

/* One head's rows of one factor in memory. */
template <typename Stored> struct head_rows {
    Stored *start;
    int64_t row; /* distance between rows, in values */
    int count, width;
    bool whole; /* rows can be read and written 16 bytes at a time */
};

template <typename Stored>
static __device__ inline head_rows<Stored> rows_at(const struct attention_head &head, Stored *start, int64_t row,
                                                   bool whole)
{
    return {start, row, (int)head.t, head.width, whole};
}

static __device__ inline int lane_number(void)
{
    return (int)threadIdx.x;
}
static __device__ inline int tile_thread_number(void)
{
    return (int)(threadIdx.y * WARP + threadIdx.x);
}

/* Loads ROWS rows from row `first` on, with zeros after the last row and after the width. The
 * data is there once the copies have been awaited and the block has passed a barrier. */
template <int STEPS, int ROWS, typename Stored>
static __device__ inline void load_rows(const head_rows<const Stored> &rows, int first, Stored *to)
{
    const int wide = STEPS * 16 / PIECE, at_once = TILE_THREADS / wide;
    if (rows.whole) {
        const int row = tile_thread_number() / wide, column = tile_thread_number() % wide * PIECE;
        const Stored *from = rows.start + (first + row) * rows.row + column;
        to += row * ROW_PITCH(STEPS) + column;
#pragma unroll
        for (int i = 0; i < ROWS; i += at_once)
            copy_ahead<16>(to + i * ROW_PITCH(STEPS), from + i * rows.row,
                           first + row + i < rows.count && column < rows.width);
        return;
    }
    for (int i = tile_thread_number(); i < ROWS * STEPS * 16; i += TILE_THREADS) {
        const int row = i / (STEPS * 16), column = i % (STEPS * 16);
        const bool there = first + row < rows.count && column < rows.width;
        to[row * ROW_PITCH(STEPS) + column] = there ? rows.start[(first + row) * rows.row + column] : Stored{};
    }
}

/* The warp's strips of a tile as left factors, by steps of 16 columns. */
template <int STEPS, int STRIPS> struct strip_factors {
    uint32_t at[STEPS][STRIPS][4];
};

template <int STEPS, int STRIPS, typename Stored>
static __device__ inline void read_strips(const Stored *from, int step, uint32_t strips[STRIPS][4])
{
#pragma unroll
    for (int s = 0; s < STRIPS; s++)
        read_left(from + s * STRIP_ROWS * ROW_PITCH(STEPS) + step * 16, ROW_PITCH(STEPS), lane_number(), strips[s]);
}

template <int STEPS, int STRIPS, typename Stored>
static __device__ inline void keep_strips(const Stored *from, strip_factors<STEPS, STRIPS> *to)
{
#pragma unroll
    for (int step = 0; step < STEPS; step++)
        read_strips<STEPS, STRIPS>(from, step, to->at[step]);
}

/* Adds to the scores what columns 16 step to 16 step + 15 contribute to the inner products of
 * the strips with the first 8 TILES rows of `right`. */
template <int STEPS, int STRIPS, int TILES, typename Stored>
static __device__ inline void multiply_step(const uint32_t strips[STRIPS][4], const Stored *right, int step,
                                            float scores[STRIPS][TILES][4])
{
#pragma unroll
    for (int j = 0; j < TILES; j += 2) {
        uint32_t columns[4];
        read_right(right + j * 8 * ROW_PITCH(STEPS) + step * 16, ROW_PITCH(STEPS), lane_number(), columns);
#pragma unroll
        for (int s = 0; s < STRIPS; s++) {
            multiply_tile<Stored>(scores[s][j], strips[s], columns);
            multiply_tile<Stored>(scores[s][j + 1], strips[s], columns + 2);
        }
    }
}

/* Adds to the scores the inner products of the strips with those rows. The strips are kept in
 * registers, or read each time. */
template <int STEPS, int STRIPS, int TILES, typename Stored>
static __device__ inline void multiply_rows(const strip_factors<STEPS, STRIPS> &left, const Stored *right,
                                            float scores[STRIPS][TILES][4])
{
#pragma unroll
    for (int step = 0; step < STEPS; step++)
        multiply_step<STEPS, STRIPS, TILES>(left.at[step], right, step, scores);
}

template <int STEPS, int STRIPS, int TILES, typename Stored>
static __device__ inline void multiply_rows(const Stored *left, const Stored *right, float scores[STRIPS][TILES][4])
{
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        uint32_t strips[STRIPS][4];
        read_strips<STEPS, STRIPS>(left, step, strips);
        multiply_step<STEPS, STRIPS, TILES>(strips, right, step, scores);
    }
}

/* sums += the warp's scores, rounded, times the first 8 TILES rows of `right`. */
template <int STEPS, int STRIPS, int TILES, typename Stored>
static __device__ inline void multiply_scores_by(const float scores[STRIPS][TILES][4], const Stored *right,
                                                 float sums[STRIPS][2 * STEPS][4])
{
    const int pitch = ROW_PITCH(STEPS), lane = lane_number();
#pragma unroll
    for (int step = 0; step < TILES / 2; step++) {
        uint32_t rows[STRIPS][4];
#pragma unroll
        for (int s = 0; s < STRIPS; s++)
            sums_as_left<Stored>(scores[s][2 * step], scores[s][2 * step + 1], rows[s]);
#pragma unroll
        for (int j = 0; j < 2 * STEPS; j += 2) {
            uint32_t columns[4];
            read_right_turned(right + step * 16 * pitch + j * 8, pitch, lane, columns);
#pragma unroll
            for (int s = 0; s < STRIPS; s++) {
                multiply_tile<Stored>(sums[s][j], rows[s], columns);
                multiply_tile<Stored>(sums[s][j + 1], rows[s], columns + 2);
            }
        }
    }
}

/* Sets the scores of keys after their query to minus infinity (the causal mask). `row` and
 * `column`: the first row and column of a strip's scores. BY_KEY: rows are keys, columns are
 * queries. */
template <bool BY_KEY, int TILES> static __device__ inline void hide_future(int row, int column, float scores[TILES][4])
{
    const int behind = row + lane_number() / 4 - column - lane_number() % 4 * 2;
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int further = j * 8 + i % 2 - i / 2 * 8;
            if (BY_KEY ? further < behind : further > behind)
                scores[j][i] = -INFINITY;
        }
}

static __device__ inline float power_factor(const struct attention_head &head)
{
    return head.scale * LOG2_E;
}

/* Stores the warp's strips of sums to rows `first` and on, by way of `stage`: rows of a tile
 * that only this warp still uses. */
template <int STEPS, int STRIPS, typename Stored>
static __device__ inline void store_strips(const head_rows<Stored> &to, int first, Stored *stage,
                                           const float sums[STRIPS][2 * STEPS][4])
{
    const int pitch = ROW_PITCH(STEPS), wide = STEPS * 16 / PIECE, lane = lane_number();
    typedef element_pack<Stored> pack;
    __syncwarp();
#pragma unroll
    for (int s = 0; s < STRIPS; s++)
#pragma unroll
        for (int j = 0; j < 2 * STEPS; j++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const float *two = sums[s][j] + 2 * half;
                Stored *place = stage + (s * STRIP_ROWS + half * 8 + lane / 4) * pitch + j * 8 + lane % 4 * 2;
                *(value_pair *)place = pair_of<Stored>(two[0], two[1]);
            }
    __syncwarp();
    for (int i = lane; i < STRIPS * STRIP_ROWS * wide; i += WARP) {
        const int row = i / wide, column = i % wide * PIECE;
        const Stored *from = stage + row * pitch + column;
        Stored *place = to.start + (first + row) * to.row + column;
        if (first + row >= to.count || column >= to.width)
            continue;
        if (to.whole)
            *(pack *)place = *(const pack *)from;
        else
            for (int k = 0; k < PIECE && column + k < to.width; k++)
                place[k] = from[k];
    }
}

/* Returns whether rows of heads can be read and written 16 bytes at a time. */
static inline bool heads_are_whole(int64_t c, int64_t heads, const void *values, const void *others)
{
    return c / heads % PIECE == 0 && ((uintptr_t)values | (uintptr_t)others) % 16 == 0;
}

/* Heads wider than 64, for which a warp has too few registers for two strips. */
#define IS_WIDE(steps) ((steps) > 4)

/* Returns whether each warp has two strips, which halves the reads of the other factor: if
 * enough blocks remain. */
static inline bool two_strips(int64_t b, int64_t heads, int64_t t)
{
    return t > BLOCK_ROWS(1) && b * heads * attention_tile_count(t, BLOCK_ROWS(2)) >= 256;
}

/* Return the shared memory that each kernel needs at least; `steps` as in the kernels'
 * templates. */
size_t attention_forward_tensor_bytes(int steps);
size_t attention_backward_tensor_bytes(int steps);
void attention_forward_tensor(const struct cuda_call *call, const struct attention_forward *op);
void attention_backward_tensor(const struct cuda_call *call, const struct attention_backward *op);

#endif
