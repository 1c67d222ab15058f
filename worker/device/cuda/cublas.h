/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads cuBLAS, and cuBLASLt if it is wanted, with dlopen when a GPU is opened. A worker built with
 * CUDA=1 therefore starts on machines that have neither driver nor libraries. If a library is
 * missing, opening the GPU fails with ERROR_UNSUPPORTED and names the library.
 */
#ifndef COXSWAIN_DEVICE_CUDA_CUBLAS_H
#define COXSWAIN_DEVICE_CUDA_CUBLAS_H

#include <cublasLt.h>
#include <cublas_v2.h>
#include <stdbool.h>

#include "common/error.h"

#define CUBLAS_FUNCTIONS(X)                                                                                            \
    X(cublasCreate_v2)                                                                                                 \
    X(cublasDestroy_v2)                                                                                                \
    X(cublasSetStream_v2)                                                                                              \
    X(cublasSetWorkspace_v2)                                                                                           \
    X(cublasSetMathMode)                                                                                               \
    X(cublasSgemm_v2_64)                                                                                               \
    X(cublasGemmEx_64)                                                                                                 \
    X(cublasGetStatusString)

#define CUBLASLT_FUNCTIONS(X)                                                                                          \
    X(cublasLtCreate)                                                                                                  \
    X(cublasLtDestroy)                                                                                                 \
    X(cublasLtMatmulDescCreate)                                                                                        \
    X(cublasLtMatmulDescDestroy)                                                                                       \
    X(cublasLtMatmulDescSetAttribute)                                                                                  \
    X(cublasLtMatrixLayoutCreate)                                                                                      \
    X(cublasLtMatrixLayoutDestroy)                                                                                     \
    X(cublasLtMatmulPreferenceCreate)                                                                                  \
    X(cublasLtMatmulPreferenceDestroy)                                                                                 \
    X(cublasLtMatmulPreferenceSetAttribute)                                                                            \
    X(cublasLtMatmulAlgoGetHeuristic)                                                                                  \
    X(cublasLtMatmul)

struct cublas {
    void *library, *lt; /* lt: cuBLASLt; NULL: not used */
#define X(name) __typeof__(name) *name;
    CUBLAS_FUNCTIONS(X)
    CUBLASLT_FUNCTIONS(X)
#undef X
};

/* Loads the libraries. ERROR_UNSUPPORTED: the message says which library is missing. */
int cublas_open(struct cublas *cublas, bool with_lt, struct error *error);
void cublas_close(struct cublas *cublas);

#endif
