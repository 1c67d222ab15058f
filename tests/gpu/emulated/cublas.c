/* SPDX-License-Identifier: Apache-2.0
 *
 * libcublas.so.0, which a worker for emulated GPUs opens in cuBLAS's place.
 * Products are summed in the order of k, and added to c at the end.
 */
#include <cublas_v2.h>

#include <stdlib.h>
#include <string.h>

#include "tests/gpu/emulated/stream.h"

struct cublasContext {
    cudaStream_t stream;
};

struct product {
    int64_t m, n, k, a_stride, b_stride, c_stride;
    cublasOperation_t a_operation, b_operation;
    float alpha, beta, *c;
    const float *a, *b;
};

/* sums[i] of column j: a's columns are gone through one after the other. */
static void sum_column(const struct product *job, const float *a, int64_t j, float *sums)
{
    memset(sums, 0, (size_t)job->m * sizeof *sums);
    for (int64_t k = 0; k < job->k; k++) {
        const float factor =
            job->b_operation == CUBLAS_OP_N ? job->b[j * job->b_stride + k] : job->b[k * job->b_stride + j];
        const float *column = a + k * job->m;
        for (int64_t i = 0; i < job->m; i++)
            sums[i] += column[i] * factor;
    }
}

static void pack(const struct product *job, float *to)
{
    for (int64_t k = 0; k < job->k; k++)
        for (int64_t i = 0; i < job->m; i++)
            to[k * job->m + i] =
                job->a_operation == CUBLAS_OP_N ? job->a[k * job->a_stride + i] : job->a[i * job->a_stride + k];
}

static void multiply(void *context)
{
    struct product *job = context;
    float *a = malloc((size_t)(job->m * job->k) * sizeof *a), *sums = malloc((size_t)job->m * sizeof *sums);
    if (!a || !sums)
        abort();
    pack(job, a);
    for (int64_t j = 0; j < job->n; j++) {
        float *c = job->c + j * job->c_stride;
        sum_column(job, a, j, sums);
        for (int64_t i = 0; i < job->m; i++)
            c[i] = job->alpha * sums[i] + (job->beta != 0 ? job->beta * c[i] : 0);
    }
    free(sums);
    free(a);
    free(job);
}

cublasStatus_t cublasSgemm_v2_64(cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation,
                                 int64_t m, int64_t n, int64_t k, const float *alpha, const float *a, int64_t a_stride,
                                 const float *b, int64_t b_stride, const float *beta, float *c, int64_t c_stride)
{
    const int64_t a_rows = a_operation == CUBLAS_OP_N ? m : k, b_rows = b_operation == CUBLAS_OP_N ? k : n;
    if (m < 0 || n < 0 || k < 0 || a_stride < a_rows || b_stride < b_rows || c_stride < m)
        return CUBLAS_STATUS_INVALID_VALUE;
    const struct product job = {m,           n,      k,     a_stride, b_stride, c_stride, a_operation,
                                b_operation, *alpha, *beta, c,        a,        b};
    emulated_queue_job(handle->stream, multiply, &job, sizeof job);
    return CUBLAS_STATUS_SUCCESS;
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
    return status == CUBLAS_STATUS_SUCCESS        ? "CUBLAS_STATUS_SUCCESS"
           : status == CUBLAS_STATUS_ALLOC_FAILED ? "CUBLAS_STATUS_ALLOC_FAILED"
                                                  : "CUBLAS_STATUS_INVALID_VALUE";
}
