/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the innermost loop of every matrix product and convolution: a tile of GEMM_ROWS rows
 * and up to `columns` columns, held in registers,
 *     c[r][j] (+)= sum over o < outer, i < inner of
 *                  a[r][o * a_outer + i * a_inner] * b[o * b_outer + i * b_inner + j]
 * The rows of `a` are given by pointers, so that a convolution reads its image in place (an
 * indirect convolution, Dukhan 2019); the outer sum is over kernel rows, the inner one over
 * (column, channel) pairs. There is one implementation per instruction set, all with fused
 * multiply-add and the same order of additions; the widest that the processor supports is used.
 */
#ifndef COXSWAIN_DEVICE_CPU_GEMM_KERNEL_H
#define COXSWAIN_DEVICE_CPU_GEMM_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#define GEMM_ROWS 6
#define GEMM_COLUMNS_MAX 64

struct gemm_tile {
    const float *a[GEMM_ROWS]; /* a tile with fewer rows repeats one */
    int64_t a_inner, a_outer;
    const float *b; /* full vectors are read: a panel is padded with zeros */
    int64_t b_inner, b_outer;
    int64_t inner, outer;
    float *c; /* full vectors are written */
    int64_t c_row;
    bool accumulate;
};

/* The same sums for rows at equal distances, such as the pixels of a line: as many rows as fit
 * in registers, one or two vectors wide, with bias, rectifier and mask applied. Full vectors of
 * bias and mask are read, and full vectors are written. */
#define GEMM_LINE_ROWS_MAX 16
#define GEMM_LINE_VECTORS_MAX 2
struct gemm_line {
    const float *a;
    int64_t a_row, a_inner, a_outer;
    const float *b;
    int64_t b_inner, b_outer;
    int64_t inner, outer;
    float *c;
    int64_t c_row;
    bool accumulate, relu;
    const float *bias; /* of each column; NULL: none */
    const float *mask; /* c becomes zero where this is not positive; rows are c_row apart; NULL: none */
};

struct gemm_kernel {
    const char *name;  /* "avx512", "avx2", "portable" */
    const char *title; /* "AVX-512": for people */
    int columns;       /* columns of a full tile: a multiple of `vector` */
    int vector;
    /* For tiles of 1, 2, 3 and 4 vectors; NULL beyond columns / vector. */
    void (*tile[4])(const struct gemm_tile *tile);
    /* For lines of 1 and 2 vectors: the most rows, and the functions for 1, 2, … rows. */
    int line_rows[GEMM_LINE_VECTORS_MAX];
    void (*line[GEMM_LINE_VECTORS_MAX][GEMM_LINE_ROWS_MAX])(const struct gemm_line *line);
};

extern const struct gemm_kernel gemm_kernel_portable;
#ifdef __x86_64__
extern const struct gemm_kernel gemm_kernel_avx2;
extern const struct gemm_kernel gemm_kernel_avx512;
#endif

/* Returns the best kernel for this processor, or the one called `name` (NULL: best). NULL: the
 * processor does not support it. */
const struct gemm_kernel *gemm_kernel_choose(const char *name);

#endif
