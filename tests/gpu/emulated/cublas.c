/* SPDX-License-Identifier: Apache-2.0
 *
 * libcublas.so.0, which a worker for emulated GPUs opens in cuBLAS's place.
 * Products are summed in the order of k, and added to c at the end.
 */
#include <cublas_v2.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/emulated/fault.h"
#include "tests/gpu/emulated/number.h"
#include "tests/gpu/emulated/product.h"
#include "tests/gpu/emulated/stream.h"

struct cublasContext {
    cudaStream_t stream;
};

static float factor(const struct product *job, const void *matrix, int64_t i)
{
    const float value = number(matrix, job->operands, i);
    return job->tf32 ? cut_to_tf32(value) : value;
}

/* Computes sums[i] of column j, over a's columns one after the other. */
static void sum_column(const struct product *job, const float *a, int64_t j, float *sums)
{
    memset(sums, 0, (size_t)job->m * sizeof *sums);
    for (int64_t step = 0; step < job->k; step++) {
        const int64_t k = (job->first + step) % job->k;
        const int64_t at = job->b_operation == CUBLAS_OP_N ? j * job->b_stride + k : k * job->b_stride + j;
        const float right = factor(job, job->b, at);
        const float *column = a + k * job->m;
        for (int64_t i = 0; i < job->m; i++)
            sums[i] += column[i] * right;
    }
}

static void pack(const struct product *job, float *to)
{
    for (int64_t k = 0; k < job->k; k++)
        for (int64_t i = 0; i < job->m; i++)
            to[k * job->m + i] =
                factor(job, job->a, job->a_operation == CUBLAS_OP_N ? k * job->a_stride + i : i * job->a_stride + k);
}

static float gelu(float x)
{
    return 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

static float gelu_slope(float x)
{
    const float t = tanhf(0.7978845608f * (x + 0.044715f * x * x * x));
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * 0.7978845608f * (1.0f + 3.0f * 0.044715f * x * x);
}

static float finish(const struct product *job, int64_t i, int64_t j, float sum)
{
    const int64_t at = j * job->aux_stride + i;
    if (job->bias)
        sum += number(job->bias, job->result, i);
    if (job->gelu_backward)
        return sum * gelu_slope(number(job->aux, job->result, at));
    if (!job->gelu)
        return sum;
    put(job->aux, job->result, at, sum);
    return gelu(sum);
}

static void multiply(void *context)
{
    struct product *job = context;
    float *a = malloc((size_t)(job->m * job->k) * sizeof *a), *sums = malloc((size_t)job->m * sizeof *sums);
    if (!a || !sums)
        abort();
    pack(job, a);
    if (job->workspace_bytes > 0)
        memset(job->workspace, 0xff, job->workspace_bytes);
    for (int64_t j = 0; j < job->n; j++) {
        sum_column(job, a, j, sums);
        for (int64_t i = 0; i < job->m; i++) {
            const int64_t at = j * job->c_stride + i;
            const float before = job->beta != 0 ? job->beta * number(job->c, job->result, at) : 0;
            put(job->c, job->result, at, finish(job, i, j, job->alpha * sums[i] + before));
        }
    }
    free(sums);
    free(a);
    free(job);
}

static bool begin_apart(int64_t stride, cudaDataType type, int64_t bytes)
{
    return stride * (type == CUDA_R_32F ? 4 : 2) % bytes != 0;
}

/* With EMULATED_ROWS=16, returns whether a product has rows that do not begin at multiples of 16 bytes. */
static bool rows_are_odd(const struct product *job)
{
    const char *setting = getenv("EMULATED_ROWS");
    const int64_t bytes = setting ? atoll(setting) : 0;
    return bytes > 0 &&
           (begin_apart(job->a_stride, job->operands, bytes) || begin_apart(job->b_stride, job->operands, bytes) ||
            begin_apart(job->c_stride, job->result, bytes));
}

cublasStatus_t emulated_multiply(cudaStream_t stream, const struct product *job)
{
    const int64_t a_rows = job->a_operation == CUBLAS_OP_N ? job->m : job->k;
    const int64_t b_rows = job->b_operation == CUBLAS_OP_N ? job->k : job->n;
    if (job->m < 0 || job->n < 0 || job->k < 0 || job->a_stride < a_rows || job->b_stride < b_rows ||
        job->c_stride < job->m || rows_are_odd(job))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (emulated_product_fails())
        return CUBLAS_STATUS_EXECUTION_FAILED;
    emulated_queue_job(stream, multiply, job, sizeof *job);
    return CUBLAS_STATUS_SUCCESS;
}

/* Takes the types that the worker uses, of those in the table of NVIDIA's manual. */
cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation,
                               int64_t m, int64_t n, int64_t k, const void *alpha, const void *a, cudaDataType a_type,
                               int64_t a_stride, const void *b, cudaDataType b_type, int64_t b_stride, const void *beta,
                               void *c, cudaDataType c_type, int64_t c_stride, cublasComputeType_t compute,
                               cublasGemmAlgo_t algorithm)
{
    const struct product job = {.m = m,
                                .n = n,
                                .k = k,
                                .a_stride = a_stride,
                                .b_stride = b_stride,
                                .c_stride = c_stride,
                                .a_operation = a_operation,
                                .b_operation = b_operation,
                                .alpha = *(const float *)alpha,
                                .beta = *(const float *)beta,
                                .c = c,
                                .a = a,
                                .b = b,
                                .operands = a_type,
                                .result = c_type,
                                .tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32};
    const bool halves = (a_type == CUDA_R_16BF || a_type == CUDA_R_16F) && b_type == a_type &&
                        compute == CUBLAS_COMPUTE_32F && (c_type == a_type || c_type == CUDA_R_32F);
    const bool floats = a_type == CUDA_R_32F && b_type == CUDA_R_32F && c_type == CUDA_R_32F &&
                        (compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_FAST_TF32);
    if ((!halves && !floats) || algorithm != CUBLAS_GEMM_DEFAULT)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return emulated_multiply(handle->stream, &job);
}

cublasStatus_t cublasSgemm_v2_64(cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation,
                                 int64_t m, int64_t n, int64_t k, const float *alpha, const float *a, int64_t a_stride,
                                 const float *b, int64_t b_stride, const float *beta, float *c, int64_t c_stride)
{
    return cublasGemmEx_64(handle, a_operation, b_operation, m, n, k, alpha, a, CUDA_R_32F, a_stride, b, CUDA_R_32F,
                           b_stride, beta, c, CUDA_R_32F, c_stride, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    (void)handle;
    return ((int)mode & ~(int)CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) == CUBLAS_DEFAULT_MATH
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    *handle = calloc(1, sizeof **handle);
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
    (void)handle;
    (void)workspace;
    (void)bytes;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS            ? "CUBLAS_STATUS_SUCCESS"
           : status == CUBLAS_STATUS_ALLOC_FAILED     ? "CUBLAS_STATUS_ALLOC_FAILED"
           : status == CUBLAS_STATUS_NOT_SUPPORTED    ? "CUBLAS_STATUS_NOT_SUPPORTED"
           : status == CUBLAS_STATUS_EXECUTION_FAILED ? "CUBLAS_STATUS_EXECUTION_FAILED"
                                                      : "CUBLAS_STATUS_INVALID_VALUE";
}
