/* SPDX-License-Identifier: Apache-2.0
 *
 * What the GPU's operations share. Each is a file of its own: kernels, and a
 * launcher `cuda_<name>(call, arguments)` with C linkage that enqueues them on
 * the call's stream and returns. This header is C for cuda_stream.c and C++ for
 * nvcc; nothing else of C++ shows outside the .cu files.
 *
 * Results are the same bits from run to run: sums are taken in an order that
 * shapes alone fix, without atomic additions. Contraction to fused multiply-add
 * is off, as on the CPU; the inner products ask for it by name (fmaf).
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

/* What a kernel leaves behind that met a bad token or target: pinned memory, one a stream, written once. Of several bad
 * ones in a launch any may be named. */
enum cuda_fault_kind { CUDA_FAULT_NONE, CUDA_FAULT_TOKEN, CUDA_FAULT_TARGET };
struct cuda_fault {
    int64_t limit;
    int32_t value;
    int32_t kind;
};

struct cuda_call {
    cudaStream_t stream;
    struct cuda_fault *fault;
    float *scratch; /* CUDA_SCRATCH_BYTES of device memory that only this stream uses, for one operation at a time */
    void *patches;  /* CUDA_PATCHES_BYTES, likewise: the scratch is cuBLAS's while it multiplies them */
    struct cuda_stream *owner;
    enum stored stored;  /* how values lie in memory */
    size_t shared_bytes; /* that a block of this GPU may ask for */
};
#define CUDA_SCRATCH_BYTES (32 << 20)
#define CUDA_SCRATCH_FLOATS (CUDA_SCRATCH_BYTES / 4)
#define CUDA_PATCHES_BYTES (32 << 20)

/* Which call failed, for whoever mends it. */
struct cuda_place {
    const char *call, *file;
    int line;
};

/* The stream has failed; what is launched on it from now on is skipped. What the failure means: cuda_failure.h. */
void cuda_call_fail_at(const struct cuda_call *call, cudaError_t result, const char *name, const char *file, int line);
#define cuda_call_fail(call, result, name) cuda_call_fail_at(call, result, name, __FILE__, __LINE__)
/* What the GPU, as it is, cannot do for this job: `why` says what to change. */
void cuda_call_refuse(const struct cuda_call *call, const char *why);

#define X(name) void cuda_##name(const struct cuda_call *call, const struct name *arguments);
DEVICE_OPERATIONS(X)
#undef X

/* Row-major c[m,n] = op(a) op(b), or c += that product; op(a) is [m,k], op(b) [k,n]; `a` is stored transposed, as
 * [k,m], where a_transposed says so, `b` likewise as [n,k]. By cuBLAS, whose sums are float32: of float32, which is cut to
 * TF32 only where `tf32` says so, or of values in two bytes, where c may be such, too. */
struct cuda_product {
    int64_t m, n, k;
    const void *a, *b;
    void *c;
    bool a_transposed, b_transposed, accumulate;
    enum stored operands, result;
    int64_t a_row, b_row, c_row; /* how far apart the stored rows lie (those of c, where k is not 0); 0: packed */
    bool tf32;
};
void cuda_multiply(const struct cuda_call *call, const struct cuda_product *product);

/* Of a block's shared memory, what attention of heads so wide needs at least, forwards and backwards. */
#define CUDA_ATTENTION_WIDTH_MAX 128
size_t cuda_attention_bytes(int64_t width, enum stored stored);

/* sums[column] (+)= the sum over rows of the values x[rows,columns], whose rows lie `row` apart: the gradient of a bias. */
void cuda_column_sums(const struct cuda_call *call, const float *x, int64_t rows, int64_t columns, int64_t row,
                      float *sums, bool accumulate);

/* Adds up rows of (loss, 1 if correct) in a fixed order; `correct` false: rows of losses alone. */
void cuda_loss_sums(const struct cuda_call *call, const double *rows, int64_t count, bool correct,
                    struct loss_sums *sums);

#ifdef __cplusplus
}
#endif
#endif
