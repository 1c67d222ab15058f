/* SPDX-License-Identifier: Apache-2.0
 *
 * oneDNN's matrix product: the one door to that library. Its C interface for
 * primitives changed between 2.x and 3.x, sgemm did not, and sgemm is all that
 * pays here.
 */
#ifndef COXSWAIN_DEVICE_CPU_ONEDNN_H
#define COXSWAIN_DEVICE_CPU_ONEDNN_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the library computes with this arithmetic (gemm_kernel.h's words), and so with the same bits wherever it does. A process
 * has it do one: the first that is asked for. */
bool onednn_computes_with(const char *arithmetic);

/* A matrix as sgemm takes it: rows of `stride` floats, or, transposed, columns of them. */
struct onednn_matrix {
    const float *start;
    int64_t stride;
    bool transposed;
};

/* c[M,N] = a[M,K] b[K,N] on the calling thread alone; false when the library has no memory for its own copies. */
bool onednn_multiply(int64_t m, int64_t n, int64_t k, const struct onednn_matrix *a, const struct onednn_matrix *b,
                     float *c, int64_t c_row);

#endif
