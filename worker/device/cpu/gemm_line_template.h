/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines, for one instruction set, the functions of a gemm_kernel that compute a line: product
 * rows at equal distances, such as the pixels of an image line (struct gemm_line). Each
 * gemm_kernel_*.c includes it once, after gemm_tile_template.h and three more definitions:
 * kernel_add(a, b), kernel_positive(v), v or zero where v is not positive (a NaN stays), and kernel_keep(v, by), v or
 * zero where `by` is not positive. It has no include guard: each includer defines its own
 * functions.
 */

#define KERNEL_LINE(rows, vectors)                                                                                     \
    KERNEL_TARGET static void line_##rows##_##vectors(const struct gemm_line *line)                                    \
    {                                                                                                                  \
        line_of(line, rows, vectors);                                                                                  \
    }
#define KERNEL_LINES_6(vectors)                                                                                        \
    KERNEL_LINE(1, vectors)                                                                                            \
    KERNEL_LINE(2, vectors)                                                                                            \
    KERNEL_LINE(3, vectors)                                                                                            \
    KERNEL_LINE(4, vectors)                                                                                            \
    KERNEL_LINE(5, vectors)                                                                                            \
    KERNEL_LINE(6, vectors)
#define KERNEL_LINES_12(vectors)                                                                                       \
    KERNEL_LINES_6(vectors)                                                                                            \
    KERNEL_LINE(7, vectors)                                                                                            \
    KERNEL_LINE(8, vectors)                                                                                            \
    KERNEL_LINE(9, vectors)                                                                                            \
    KERNEL_LINE(10, vectors)                                                                                           \
    KERNEL_LINE(11, vectors)                                                                                           \
    KERNEL_LINE(12, vectors)
#define LINES_6(v) line_1_##v, line_2_##v, line_3_##v, line_4_##v, line_5_##v, line_6_##v
#define LINES_12(v) LINES_6(v), line_7_##v, line_8_##v, line_9_##v, line_10_##v, line_11_##v, line_12_##v

/* One pointer for every four rows: as many as there are registers for. */
#define LINE_POINTERS (GEMM_LINE_ROWS_MAX / 4)

KERNEL_TARGET static inline __attribute__((always_inline)) void line_finish(const struct gemm_line *line, const int v,
                                                                            int64_t at, KERNEL_VECTOR sum)
{
    if (line->bias)
        sum = kernel_add(sum, kernel_load(line->bias + v * KERNEL_LANES));
    if (line->relu)
        sum = kernel_positive(sum);
    if (line->mask)
        sum = kernel_keep(sum, kernel_load(line->mask + at));
    kernel_store(line->c + at, sum);
}

KERNEL_TARGET static inline __attribute__((always_inline)) void line_of(const struct gemm_line *line, const int rows,
                                                                        const int vectors)
{
    KERNEL_VECTOR sum[GEMM_LINE_ROWS_MAX][GEMM_LINE_VECTORS_MAX];
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sum[r][v] = line->accumulate ? kernel_load(line->c + r * line->c_row + v * KERNEL_LANES) : kernel_zero();

    const int64_t inner = line->inner, a_inner = line->a_inner, b_inner = line->b_inner, step = line->a_row;
    for (int64_t o = 0; o < line->outer; o++) {
        const float *b = line->b + o * line->b_outer, *a[LINE_POINTERS];
#pragma GCC unroll 4
        for (int p = 0; p < (rows + 3) / 4; p++)
            a[p] = line->a + o * line->a_outer + 4 * p * step;
        for (int64_t i = 0; i < inner; i++) {
            KERNEL_VECTOR row[GEMM_LINE_VECTORS_MAX];
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                row[v] = kernel_load(b + v * KERNEL_LANES);
#pragma GCC unroll 16
            for (int r = 0; r < rows; r++) {
                KERNEL_VECTOR value = kernel_spread(a[r / 4] + r % 4 * step);
#pragma GCC unroll 2
                for (int v = 0; v < vectors; v++)
                    sum[r][v] = kernel_multiply_add(value, row[v], sum[r][v]);
            }
#pragma GCC unroll 4
            for (int p = 0; p < (rows + 3) / 4; p++) {
                a[p] += a_inner;
                /* Keeps the compiler from using a pointer for every row, in memory. */
                __asm__("" : "+r"(a[p]));
            }
            b += b_inner;
        }
    }

#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            line_finish(line, v, r * line->c_row + v * KERNEL_LANES, sum[r][v]);
}
