/* SPDX-License-Identifier: Apache-2.0
 *
 * As much of cuBLAS's interface as the worker uses, for emulated GPUs: cublas.c.
 */
#ifndef COXSWAIN_TESTS_GPU_EMULATED_CUBLAS_V2_H
#define COXSWAIN_TESTS_GPU_EMULATED_CUBLAS_V2_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#define CUBLAS_VER_MAJOR 0 /* which no library of NVIDIA's has */

typedef enum { CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_ALLOC_FAILED = 3, CUBLAS_STATUS_INVALID_VALUE = 7 } cublasStatus_t;
typedef enum { CUBLAS_OP_N, CUBLAS_OP_T } cublasOperation_t;
typedef struct cublasContext *cublasHandle_t;

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes);
/* Column-major c[m,n] = alpha op(a)[m,k] op(b)[k,n] + beta c. */
cublasStatus_t cublasSgemm_v2_64(cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation,
                                 int64_t m, int64_t n, int64_t k, const float *alpha, const float *a, int64_t a_stride,
                                 const float *b, int64_t b_stride, const float *beta, float *c, int64_t c_stride);
const char *cublasGetStatusString(cublasStatus_t status);

#endif
