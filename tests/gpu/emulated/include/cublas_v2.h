/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of cuBLAS's interface that the worker uses, for emulated GPUs (cublas.c).
 */
#ifndef COXSWAIN_TESTS_GPU_EMULATED_CUBLAS_V2_H
#define COXSWAIN_TESTS_GPU_EMULATED_CUBLAS_V2_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#define CUBLAS_VER_MAJOR 0 /* no library of NVIDIA has this version */

typedef enum {
    CUBLAS_STATUS_SUCCESS,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    CUBLAS_STATUS_NOT_SUPPORTED = 15
} cublasStatus_t;
typedef enum { CUBLAS_OP_N, CUBLAS_OP_T } cublasOperation_t;
typedef struct cublasContext *cublasHandle_t;
typedef enum { CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14 } cudaDataType;
typedef enum { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 } cublasComputeType_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1 } cublasGemmAlgo_t;
typedef enum { CUBLAS_DEFAULT_MATH = 0, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16 } cublasMath_t;

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
/* Column-major c[m,n] = alpha op(a)[m,k] op(b)[k,n] + beta c. */
cublasStatus_t cublasSgemm_v2_64(cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation,
                                 int64_t m, int64_t n, int64_t k, const float *alpha, const float *a, int64_t a_stride,
                                 const float *b, int64_t b_stride, const float *beta, float *c, int64_t c_stride);
cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation,
                               int64_t m, int64_t n, int64_t k, const void *alpha, const void *a, cudaDataType a_type,
                               int64_t a_stride, const void *b, cudaDataType b_type, int64_t b_stride, const void *beta,
                               void *c, cudaDataType c_type, int64_t c_stride, cublasComputeType_t compute,
                               cublasGemmAlgo_t algorithm);
const char *cublasGetStatusString(cublasStatus_t status);

#endif
