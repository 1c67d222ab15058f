/* SPDX-License-Identifier: Apache-2.0
 *
 * A product of matrices as cuBLAS and cuBLASLt queue it: column-major
 * c[m,n] = finish(alpha op(a)[m,k] op(b)[k,n] + beta c).
 */
#ifndef COXSWAIN_TESTS_GPU_EMULATED_PRODUCT_H
#define COXSWAIN_TESTS_GPU_EMULATED_PRODUCT_H

#include <cublas_v2.h>
#include <stdbool.h>

struct product {
    int64_t m, n, k, a_stride, b_stride, c_stride;
    cublasOperation_t a_operation, b_operation;
    float alpha, beta;
    void *c;
    const void *a, *b;
    cudaDataType operands, result;
    bool tf32;
    /* What cuBLASLt does with a sum before it is rounded. `aux` [m,n], like `bias` [m], is laid out like c. */
    const void *bias;
    void *aux;
    int64_t aux_stride;
    bool gelu, gelu_backward;
    void *workspace; /* gets written */
    size_t workspace_bytes;
    int64_t first; /* index of the first of the k terms of each sum, which continue cyclically */
};

/* Queues the product. Sums go in the order of k, from `first` on. */
cublasStatus_t emulated_multiply(cudaStream_t stream, const struct product *job);

#endif
