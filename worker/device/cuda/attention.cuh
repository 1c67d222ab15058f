/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes attention in tiles of 64 queries by 64 keys, as in FlashAttention (Dao et al. 2022; Dao
 * 2023): scores never leave the multiprocessor. A block of 16 x 16 threads works on one tile of
 * one head; thread (x, y) has rows 4 y to 4 y + 3 and the keys or columns at x of each product.
 * The backward pass computes the scores twice, once for the gradients of the queries and once for
 * those of keys and values, so that no block adds to another's results.
 *
 * If a block cannot have shared memory for all tiles that it multiplies, the tiles take turns in
 * the same place (LEAN): more reads, but the same sums in the same order.
 *
 * Tiles lie in shared memory by column (column after column, 64 rows each) if a product runs over
 * the width, and by row, padded with zeros to the width of the kernel, if it runs over rows. So
 * both factors are read four numbers at a time.
 */
#ifndef COXSWAIN_DEVICE_CUDA_ATTENTION_CUH
#define COXSWAIN_DEVICE_CUDA_ATTENTION_CUH

#include <math.h>

#include "worker/device/cuda/read_share.cuh"
#include "worker/device/cuda/stored.cuh"
#include "worker/device/cuda/warp.cuh"

#define ATTENTION_TILE 64
#define ATTENTION_SIDE 16 /* threads along each axis of a block */
#define ATTENTION_SHARE 4 /* rows and keys of a tile per thread */
#define ATTENTION_PITCH (ATTENTION_TILE + 4) /* floats of a column, and of a row of scores */

/* One head of one example: offsets into qkv (and its gradient) and into y. */
struct attention_head {
    int64_t t, qkv_row, query, key, value, output, output_row, statistics;
    int width;
    float scale;
};

static __device__ inline struct attention_head attention_head(int64_t t, int64_t c, int64_t heads, int64_t number)
{
    const int64_t width = c / heads, example = number / heads;
    const int64_t query = example * t * 3 * c + number % heads * width;
    return {t,
            3 * c,
            query,
            query + c,
            query + 2 * c,
            example * t * c + number % heads * width,
            c,
            number * t,
            (int)width,
            1.0f / sqrtf((float)width)};
}

/* Blocks form a one-dimensional grid, with all tiles (of `rows`) of a head side by side, because
 * the other axes of a grid end at 65,535. */
static __host__ __device__ inline unsigned attention_tile_count(int64_t t, int rows = ATTENTION_TILE)
{
    return (unsigned)((t + rows - 1) / rows);
}
static __device__ inline int64_t attention_tile(int64_t t, int rows = ATTENTION_TILE)
{
    return blockIdx.x % attention_tile_count(t, rows);
}
static __device__ inline int64_t attention_number(int64_t t, int rows = ATTENTION_TILE)
{
    return blockIdx.x / attention_tile_count(t, rows);
}
/* Returns the tile's first query. The tiles with the most keys come first. */
static __device__ inline int64_t first_query(int64_t t, int rows = ATTENTION_TILE)
{
    return (attention_tile_count(t, rows) - 1 - attention_tile(t, rows)) * rows;
}

static __device__ inline int attention_thread(void)
{
    return (int)(threadIdx.y * ATTENTION_SIDE + threadIdx.x);
}

/* Loads 64 rows from row `first` on, with zeros after row t: by column, by row, or both (if
 * neither is NULL). */
template <int COLUMNS>
static __device__ inline void load_tile(const struct attention_head &head, const float *from, int64_t row_stride,
                                        int64_t first, float *by_column, float *by_row)
{
    const int wide = ATTENTION_SIDE * COLUMNS;
    for (int i = attention_thread(); i < ATTENTION_TILE * wide; i += ATTENTION_SIDE * ATTENTION_SIDE) {
        const int row = i / wide, column = i % wide;
        const bool there = first + row < head.t && column < head.width;
        const float value = there ? from[(first + row) * row_stride + column] : 0;
        if (by_column && column < head.width)
            by_column[column * ATTENTION_PITCH + row] = value;
        if (by_row)
            by_row[i] = value;
    }
}

/* scores[i][j] += the inner product of the thread's i-th row of `a` with its j-th row of `b`,
 * both by column. */
static __device__ inline void multiply_rows(const struct attention_head &head, const float *a, const float *b,
                                            float scores[ATTENTION_SHARE][ATTENTION_SHARE])
{
    a += threadIdx.y * ATTENTION_SHARE;
    b += threadIdx.x * ATTENTION_SHARE;
#pragma unroll 4
    for (int k = 0; k < head.width; k++, a += ATTENTION_PITCH, b += ATTENTION_PITCH) {
        __align__(16) float x[ATTENTION_SHARE], y[ATTENTION_SHARE];
        read_share<ATTENTION_SHARE>(x, a);
        read_share<ATTENTION_SHARE>(y, b);
#pragma unroll
        for (int i = 0; i < ATTENTION_SHARE; i++)
#pragma unroll
            for (int j = 0; j < ATTENTION_SHARE; j++)
                scores[i][j] = fmaf(x[i], y[j], scores[i][j]);
    }
}

/* Store to[key][query], or to[query][key]. */
static __device__ inline void store_by_key(float *to, const float scores[ATTENTION_SHARE][ATTENTION_SHARE])
{
#pragma unroll
    for (int j = 0; j < ATTENTION_SHARE; j++)
        *(float4 *)(to + (threadIdx.x * ATTENTION_SHARE + j) * ATTENTION_PITCH + threadIdx.y * ATTENTION_SHARE) =
            make_float4(scores[0][j], scores[1][j], scores[2][j], scores[3][j]);
}

static __device__ inline void store_by_query(float *to, const float scores[ATTENTION_SHARE][ATTENTION_SHARE])
{
#pragma unroll
    for (int i = 0; i < ATTENTION_SHARE; i++)
        *(float4 *)(to + (threadIdx.y * ATTENTION_SHARE + i) * ATTENTION_PITCH + threadIdx.x * ATTENTION_SHARE) =
            make_float4(scores[i][0], scores[i][1], scores[i][2], scores[i][3]);
}

/* sums[i][j] += over k: scores[k][the thread's i-th row] times the thread's j-th column of row k
 * of `tile`. */
template <int COLUMNS>
static __device__ inline void multiply_scores(const float *scores, const float *tile,
                                              float sums[ATTENTION_SHARE][COLUMNS])
{
    scores += threadIdx.y * ATTENTION_SHARE;
    tile += threadIdx.x * COLUMNS;
#pragma unroll 4
    for (int k = 0; k < ATTENTION_TILE; k++, scores += ATTENTION_PITCH, tile += ATTENTION_SIDE * COLUMNS) {
        __align__(16) float x[ATTENTION_SHARE], y[COLUMNS];
        read_share<ATTENTION_SHARE>(x, scores);
        read_share<COLUMNS>(y, tile);
#pragma unroll
        for (int i = 0; i < ATTENTION_SHARE; i++)
#pragma unroll
            for (int j = 0; j < COLUMNS; j++)
                sums[i][j] = fmaf(x[i], y[j], sums[i][j]);
    }
}

template <int COLUMNS>
static __device__ inline void store_rows(const struct attention_head &head, float *to, int64_t row_stride,
                                         int64_t first, const float sums[ATTENTION_SHARE][COLUMNS])
{
#pragma unroll
    for (int i = 0; i < ATTENTION_SHARE; i++)
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            const int64_t row = first + threadIdx.y * ATTENTION_SHARE + i;
            const int column = (int)threadIdx.x * COLUMNS + j;
            if (row < head.t && column < head.width)
                to[row * row_stride + column] = sums[i][j];
        }
}

/* Reduce over the LANES neighbouring lanes of a row. */
template <int LANES> static __device__ inline float row_maximum(float x)
{
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        x = fmaxf(x, __shfl_xor_sync(~0u, x, distance));
    return x;
}

template <int LANES> static __device__ inline float row_sum(float x)
{
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        x += __shfl_xor_sync(~0u, x, distance);
    return x;
}

/* Return the floats of a tile by column, by row, or of the larger of both. */
static __host__ __device__ inline int tile_by_column(int width)
{
    return width * ATTENTION_PITCH;
}
static __host__ __device__ inline int tile_by_row(int columns)
{
    return ATTENTION_TILE * ATTENTION_SIDE * columns;
}
static __host__ __device__ inline int tile_in_turn(int width, int columns)
{
    return tile_by_column(width) > tile_by_row(columns) ? tile_by_column(width) : tile_by_row(columns);
}

/* Returns the bytes of the given numbers of tiles of each kind, and of a tile of scores. */
static inline size_t attention_bytes(int64_t width, int columns, int by_column, int by_row, int in_turn)
{
    const int floats = by_column * tile_by_column((int)width) + by_row * tile_by_row(columns) +
                       in_turn * tile_in_turn((int)width, columns) + ATTENTION_TILE * ATTENTION_PITCH;
    return (size_t)floats * sizeof(float);
}

/* The shared memory of a kernel, and of its lean version. */
struct attention_needs {
    size_t bytes, lean_bytes;
};

/* Returns the number of blocks: one per tile (of `rows`) of each head. */
template <typename Operation> static unsigned attention_blocks(const Operation &op, int rows = ATTENTION_TILE)
{
    return attention_tile_count(op.t, rows) * (unsigned)(op.b * op.heads);
}

/* Launches a kernel, and requests its shared memory if it exceeds 48 KiB. */
template <typename... Parameters, typename... Arguments>
static void launch_attention(const struct cuda_call *call, unsigned blocks, dim3 threads, size_t shared_bytes,
                             void (*kernel)(Parameters...), const Arguments &...arguments)
{
    if (blocks == 0)
        return;
    cudaError_t result =
        shared_bytes > 48 * 1024
            ? cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes)
            : cudaSuccess;
    if (result != cudaSuccess)
        cuda_call_fail(call, result, "cudaFuncSetAttribute");
    else
        launch_kernel(call, dim3(blocks), threads, shared_bytes, kernel, arguments...);
}

/* Launches `whole` if the GPU has enough shared memory, else `lean`. */
template <typename... Parameters, typename... Arguments>
static void launch_fitting(const struct cuda_call *call, unsigned blocks, dim3 threads, attention_needs needs,
                           void (*whole)(Parameters...), void (*lean)(Parameters...), const Arguments &...arguments)
{
    if (needs.bytes <= call->shared_bytes)
        launch_attention(call, blocks, threads, needs.bytes, whole, arguments...);
    else
        launch_attention(call, blocks, threads, needs.lean_bytes, lean, arguments...);
}

static inline int columns_of(int64_t width)
{
    return width <= 32 ? 2 : width <= 64 ? 4 : 8;
}

/* Returns the columns of a head's width per thread (or 16ths of those per warp), rounded up to
 * an existing kernel; 0: the head is too wide, and the stream has failed. */
static inline int attention_columns(const struct cuda_call *call, int64_t c, int64_t heads)
{
    const int64_t width = c / heads;
    if (width > CUDA_ATTENTION_WIDTH_MAX) {
        cuda_call_refuse(call, "attention heads wider than 128 are not supported on GPUs: give the attention more heads");
        return 0;
    }
    return columns_of(width);
}

/* Calls launch<COLUMNS>(call, op) for the columns that fit the heads' width. */
#define BY_COLUMNS(launch, call, op)                                                                                   \
    do {                                                                                                               \
        switch (attention_columns(call, (op)->c, (op)->heads)) {                                                       \
        case 2:                                                                                                        \
            launch<2>(call, op);                                                                                       \
            break;                                                                                                     \
        case 4:                                                                                                        \
            launch<4>(call, op);                                                                                       \
            break;                                                                                                     \
        case 8:                                                                                                        \
            launch<8>(call, op);                                                                                       \
            break;                                                                                                     \
        }                                                                                                              \
    } while (0)

#endif
