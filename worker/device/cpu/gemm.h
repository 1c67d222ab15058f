/* SPDX-License-Identifier: Apache-2.0
 *
 * Multiplies matrices for the CPU's dense layers and attention: c[M,N] = a[M,K] b[K,N], or += with
 * `accumulate`. `a` may have any strides, b needs one unit stride. Bias, rectifier or mask are
 * applied to the result.
 *
 * Blocked as in Goto and van de Geijn 2008: a panel of b is packed for the cache; rows of `a` are
 * read in place (if it is transposed and K is large, they are packed). Each element of c is summed
 * in a fixed order (equal blocks of at most GEMM_DEPTH, each in order), however the work is
 * partitioned. Large products may be computed by oneDNN instead (gemm_library.h).
 */
#ifndef COXSWAIN_DEVICE_CPU_GEMM_H
#define COXSWAIN_DEVICE_CPU_GEMM_H

#include "worker/device/cpu/cpu.h"

#define GEMM_DEPTH 256
#define GEMM_CHUNK 240 /* rows of c computed for one packed panel; a multiple of GEMM_ROWS */
#define GEMM_PANELS 2  /* panels of b that share packed rows of a */

struct gemm {
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_k; /* strides */
    const float *b;
    int64_t b_k, b_column; /* one of them is 1 */
    float *c;
    int64_t c_row;
    bool accumulate;   /* c += the finished product */
    const float *bias; /* [N] or NULL */
    bool relu;
    const float *mask; /* [M,N] with c's strides, or NULL: c is zero where the mask is not positive */
};

/* Runs the product on the team. */
void gemm_run(const struct cpu_call *call, const struct gemm *gemm);
/* Runs the product on the calling thread, inside a piece; `scratch` has GEMM_SCRATCH_BYTES. */
#define GEMM_SCRATCH_FLOATS (GEMM_DEPTH * (GEMM_CHUNK + GEMM_COLUMNS_MAX) + GEMM_PANELS * GEMM_CHUNK * GEMM_COLUMNS_MAX)
#define GEMM_SCRATCH_BYTES (GEMM_SCRATCH_FLOATS * (int)sizeof(float))
void gemm_serial(const struct gemm_kernel *kernel, const struct gemm *gemm, void *scratch);

#endif
