/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls oneDNN's sgemm, the only function of the library that the worker uses (gemm_library.c);
 * sgemm did not change between oneDNN 2.x and 3.x. If the library does not use the wanted
 * instruction set, onednn_computes_with returns false and the worker's own kernel is used.
 */
#ifndef COXSWAIN_DEVICE_CPU_ONEDNN_H
#define COXSWAIN_DEVICE_CPU_ONEDNN_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether the library uses this arithmetic (a name from gemm_kernel.h), and so gives the
 * same bits on every machine that supports it. A process can use only one: the first that is
 * asked for. */
bool onednn_computes_with(const char *arithmetic);

/* A matrix for sgemm: rows that begin `stride` floats apart, or, if transposed, columns. */
struct onednn_matrix {
    const float *start;
    int64_t stride;
    bool transposed;
};

/* Computes c[M,N] = a[M,K] b[K,N] on the calling thread alone. Returns false if the library has
 * no memory for its copies. */
bool onednn_multiply(int64_t m, int64_t n, int64_t k, const struct onednn_matrix *a, const struct onednn_matrix *b,
                     float *c, int64_t c_row);

#endif
