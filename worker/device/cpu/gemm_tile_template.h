/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines, for one instruction set, the functions of a gemm_kernel that compute a tile: GEMM_ROWS
 * rows of a product (struct gemm_tile). Each gemm_kernel_*.c includes it once, after the
 * definitions of KERNEL_TARGET (function attribute), KERNEL_VECTOR (type), KERNEL_LANES, and the
 * inline functions kernel_zero, kernel_load, kernel_store, kernel_spread (one float to all lanes)
 * and kernel_multiply_add(a, b, sum). It has no include guard: each includer defines its own
 * functions.
 */

#define KERNEL_FUNCTION(vectors)                                                                                       \
    KERNEL_TARGET static void tile_##vectors(const struct gemm_tile *tile)                                             \
    {                                                                                                                  \
        tile_of(tile, vectors);                                                                                        \
    }

KERNEL_TARGET static inline __attribute__((always_inline)) void tile_of(const struct gemm_tile *tile, const int vectors)
{
    KERNEL_VECTOR sum[GEMM_ROWS][4];
#pragma GCC unroll 6
    for (int r = 0; r < GEMM_ROWS; r++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sum[r][v] = tile->accumulate ? kernel_load(tile->c + r * tile->c_row + v * KERNEL_LANES) : kernel_zero();

    const int64_t inner = tile->inner, a_inner = tile->a_inner, b_inner = tile->b_inner;
    for (int64_t o = 0; o < tile->outer; o++) {
        const float *b = tile->b + o * tile->b_outer;
        const float *a0 = tile->a[0] + o * tile->a_outer, *a1 = tile->a[1] + o * tile->a_outer;
        const float *a2 = tile->a[2] + o * tile->a_outer, *a3 = tile->a[3] + o * tile->a_outer;
        const float *a4 = tile->a[4] + o * tile->a_outer, *a5 = tile->a[5] + o * tile->a_outer;
        for (int64_t i = 0; i < inner; i++) {
            KERNEL_VECTOR row[4];
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                row[v] = kernel_load(b + v * KERNEL_LANES);
            const float *const a[GEMM_ROWS] = {a0, a1, a2, a3, a4, a5};
#pragma GCC unroll 6
            for (int r = 0; r < GEMM_ROWS; r++) {
                KERNEL_VECTOR value = kernel_spread(a[r]);
#pragma GCC unroll 4
                for (int v = 0; v < vectors; v++)
                    sum[r][v] = kernel_multiply_add(value, row[v], sum[r][v]);
            }
            a0 += a_inner, a1 += a_inner, a2 += a_inner, a3 += a_inner, a4 += a_inner, a5 += a_inner;
            b += b_inner;
        }
    }

#pragma GCC unroll 6
    for (int r = 0; r < GEMM_ROWS; r++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            kernel_store(tile->c + r * tile->c_row + v * KERNEL_LANES, sum[r][v]);
}
