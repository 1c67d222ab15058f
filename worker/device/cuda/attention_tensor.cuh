/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of values in two bytes: tiles of 64 queries by 64 keys as in
 * attention.cuh, whose products are tensor cores'. A block of four warps works on
 * a tile; a warp has 16 rows of it, scores and sums stay in its registers. Softmax
 * weights and their gradients are rounded likewise where they are factors.
 *
 * Tiles lie in shared memory by row, padded with zeros to 16 STEPS columns, or
 * turned (by column) where a product runs over rows. Pitches keep the lanes of a
 * warp in different banks.
 */
#ifndef COXSWAIN_DEVICE_CUDA_ATTENTION_TENSOR_CUH
#define COXSWAIN_DEVICE_CUDA_ATTENTION_TENSOR_CUH

#include "worker/device/cuda/attention.cuh"
#include "worker/device/cuda/tensor_core.cuh"

#define WARP_ROWS 16 /* of a tile */
#define TILE_WARPS (ATTENTION_TILE / WARP_ROWS)
#define ROW_PITCH(steps) ((steps) * 16 + 8)
#define TURNED_PITCH (ATTENTION_TILE + 8)
#define KEY_TILES (ATTENTION_TILE / 8) /* of sums, side by side */
#define ROW_LANES 4                    /* that a row's sums are shared out to */

/* Elements of a tile by row, and of a turned one. */
#define ROW_TILE(steps) (ATTENTION_TILE * ROW_PITCH(steps))
#define TURNED_TILE(steps) ((steps) * 16 * TURNED_PITCH)
#define TILE_IN_TURN(steps) (ROW_TILE(steps) > TURNED_TILE(steps) ? ROW_TILE(steps) : TURNED_TILE(steps))

static __device__ inline int tile_thread_number(void)
{
    return (int)(threadIdx.y * WARP + threadIdx.x);
}

/* 64 rows from row `first` on, zeros behind row t and behind the width; `from` is the head's column 0 of row 0. */
template <int STEPS, int LENGTH, typename Stored>
static __device__ inline void load_pieces(const struct attention_head &head, const Stored *from,
                                          int64_t row_stride, int64_t first, Stored *to)
{
    struct alignas(sizeof(Stored) * LENGTH) piece {
        Stored at[LENGTH];
    };
    const int wide = STEPS * 16 / LENGTH;
    for (int i = tile_thread_number(); i < ATTENTION_TILE * wide; i += TILE_WARPS * WARP) {
        const int row = i / wide, column = i % wide * LENGTH;
        piece some = {};
        if (first + row < head.t && column < head.width)
            some = *(const piece *)(from + (first + row) * row_stride + column);
        *(piece *)(to + row * ROW_PITCH(STEPS) + column) = some;
    }
}

/* 16 bytes at a time where `whole` says that heads are made of such. */
template <int STEPS, typename Stored>
static __device__ inline void load_rows(const struct attention_head &head, bool whole, const Stored *from,
                                        int64_t row_stride, int64_t first, Stored *to)
{
    if (whole)
        load_pieces<STEPS, 8>(head, from, row_stride, first, to);
    else
        load_pieces<STEPS, 1>(head, from, row_stride, first, to);
}

/* The same, turned. */
template <int STEPS, typename Stored>
static __device__ inline void load_turned(const struct attention_head &head, const Stored *from,
                                          int64_t row_stride, int64_t first, Stored *to)
{
    const int wide = STEPS * 16;
    for (int i = tile_thread_number(); i < ATTENTION_TILE / 2 * wide; i += TILE_WARPS * WARP) {
        const int row = i / wide * 2, column = i % wide;
        const Stored *place = from + (first + row) * row_stride + column;
        const bool inside = column < head.width;
        const uint32_t low = inside && first + row < head.t ? place[0].bits : 0;
        const uint32_t high = inside && first + row + 1 < head.t ? place[row_stride].bits : 0;
        *(value_pair *)(to + column * TURNED_PITCH + row) = high << 16 | low;
    }
}

/* scores += the inner products of the warp's rows of `left` with all rows of `right`. */
template <int STEPS, typename Stored>
static __device__ inline void multiply_tiles(const Stored *left, const Stored *right,
                                             float scores[KEY_TILES][4])
{
    const int lane = (int)threadIdx.x;
    left += threadIdx.y * WARP_ROWS * ROW_PITCH(STEPS);
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        uint32_t rows[4];
        read_left(left + step * 16, ROW_PITCH(STEPS), lane, rows);
#pragma unroll
        for (int j = 0; j < KEY_TILES; j++) {
            uint32_t columns[2];
            read_right(right + j * 8 * ROW_PITCH(STEPS) + step * 16, ROW_PITCH(STEPS), lane, columns);
            multiply_tile<Stored>(scores[j], rows, columns);
        }
    }
}

/* sums += the warp's scores, rounded, times the tile that lies turned. */
template <int STEPS, typename Stored>
static __device__ inline void multiply_turned(const float scores[KEY_TILES][4], const Stored *turned,
                                              float sums[2 * STEPS][4])
{
#pragma unroll
    for (int step = 0; step < ATTENTION_TILE / 16; step++) {
        uint32_t rows[4];
        sums_as_left<Stored>(scores[2 * step], scores[2 * step + 1], rows);
#pragma unroll
        for (int j = 0; j < 2 * STEPS; j++) {
            uint32_t columns[2];
            read_right(turned + j * 8 * TURNED_PITCH + step * 16, TURNED_PITCH, (int)threadIdx.x, columns);
            multiply_tile<Stored>(sums[j], rows, columns);
        }
    }
}

/* The row of a tile that element i of a lane's sums is of, and the column. */
static __device__ inline int sum_row(int i)
{
    return (int)(threadIdx.y * WARP_ROWS + threadIdx.x / 4) + i / 2 * 8;
}
static __device__ inline int sum_column(int tile, int i)
{
    return tile * 8 + (int)threadIdx.x % 4 * 2 + i % 2;
}

template <int STEPS, typename Stored>
static __device__ inline void store_sums(const struct attention_head &head, Stored *to, int64_t row_stride,
                                         int64_t first, const float sums[2 * STEPS][4])
{
#pragma unroll
    for (int j = 0; j < 2 * STEPS; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int64_t row = first + sum_row(i);
            const int column = sum_column(j, i);
            if (row < head.t && column < head.width)
                narrow(sums[j][i], to + row * row_stride + column);
        }
}

/* Whether rows of heads can be read 16 bytes at a time. */
static inline bool heads_are_whole(int64_t c, int64_t heads, const void *values, const void *others)
{
    return c / heads % 8 == 0 && ((uintptr_t)values | (uintptr_t)others) % 16 == 0;
}

/* What the way back, the hungrier, needs at least; `steps` as a kernel's. */
size_t attention_bytes_tensor(int steps);
void attention_forward_tensor(const struct cuda_call *call, const struct attention_forward *op);
void attention_backward_tensor(const struct cuda_call *call, const struct attention_backward *op);

#endif
