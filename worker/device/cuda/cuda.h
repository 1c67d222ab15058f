/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares what the GPU's operations share. Each operation is a file of its own: kernels, and a
 * launcher `cuda_<name>(call, arguments)` with C linkage that enqueues them on the call's stream
 * and returns. This header is C for the .c files and C++ for nvcc; no other C++ is visible outside
 * the .cu files.
 *
 * Results have the same bits from run to run: sums are computed in an order that depends on shapes
 * alone, without atomic additions. Contraction to fused multiply-add is off, as on the CPU; inner
 * products use fmaf explicitly.
 */
#ifndef COXSWAIN_DEVICE_CUDA_CUDA_H
#define COXSWAIN_DEVICE_CUDA_CUDA_H

#include <cuda_runtime_api.h>

#include "worker/device/operations.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cublas;
struct cuda_stream;

/* A kernel's report of a bad token or target, in pinned memory: one per stream, written once. If
 * a launch meets several bad ones, any of them may be reported. */
enum cuda_fault_kind { CUDA_FAULT_NONE, CUDA_FAULT_TOKEN, CUDA_FAULT_TARGET };
struct cuda_fault {
    int64_t limit;
    int32_t value;
    int32_t kind;
};

struct cuda_call {
    cudaStream_t stream;
    struct cuda_fault *fault;
    float *scratch; /* CUDA_SCRATCH_BYTES of device memory that only this stream uses, one operation at a time */
    void *patches;  /* CUDA_PATCHES_BYTES, for one operation too; cuBLAS uses `scratch` while it multiplies patches */
    struct cuda_stream *owner;
    enum stored stored;  /* format of stored values */
    size_t shared_bytes; /* shared memory that a block of this GPU may request */
};
#define CUDA_SCRATCH_BYTES (32 << 20)
#define CUDA_SCRATCH_FLOATS (CUDA_SCRATCH_BYTES / 4)
#define CUDA_PATCHES_BYTES (32 << 20)

/* The place of a call, for error messages. */
struct cuda_place {
    const char *call, *file;
    int line;
};

/* Fails the stream: launches on it are skipped from now on. For what the failure means see
 * cuda_failure.h. */
void cuda_call_fail_at(const struct cuda_call *call, cudaError_t result, const char *name, const char *file, int line);
#define cuda_call_fail(call, result, name) cuda_call_fail_at(call, result, name, __FILE__, __LINE__)
/* Fails the stream because this GPU cannot run the job; `why` says what to change. */
void cuda_call_refuse(const struct cuda_call *call, const char *why);

#define X(name) void cuda_##name(const struct cuda_call *call, const struct name *arguments);
DEVICE_OPERATIONS(X)
#undef X

/* Row-major c[m,n] = op(a) op(b), or c += that product; op(a) is [m,k], op(b) is [k,n]. With
 * a_transposed, `a` is stored as [k,m]; with b_transposed, `b` is stored as [n,k]. Computed by
 * cuBLAS with float32 sums. Operands are float32 (rounded to TF32 only if `tf32`) or two-byte
 * values; then c may be two-byte too. */
struct cuda_product {
    int64_t m, n, k;
    const void *a, *b;
    void *c;
    bool a_transposed, b_transposed, accumulate;
    enum stored operands, result;
    int64_t a_row, b_row, c_row; /* distances between stored rows (c_row not if k is 0); 0: packed */
    bool tf32;
};
void cuda_multiply(const struct cuda_call *call, const struct cuda_product *product);

/* Returns the shared memory that a block needs at least for attention with heads of that width,
 * forward and backward. */
#define CUDA_ATTENTION_WIDTH_MAX 128
size_t cuda_attention_bytes(int64_t width, enum stored stored);

/* Computes sums[column] (+)= the sum of the rows of x[rows,columns], stored values whose rows
 * lie `row` apart: the gradient of a bias. */
void cuda_column_sums(const struct cuda_call *call, const float *x, int64_t rows, int64_t columns, int64_t row,
                      float *sums, bool accumulate);

/* Sums rows of (loss, 1 if correct) in a fixed order. `correct` false: the rows hold only
 * losses. */
void cuda_loss_sums(const struct cuda_call *call, const double *rows, int64_t count, bool correct,
                    struct loss_sums *sums);

#ifdef __cplusplus
}
#endif
#endif
