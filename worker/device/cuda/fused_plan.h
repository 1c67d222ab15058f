/* SPDX-License-Identifier: Apache-2.0
 *
 * How cuBLASLt computes a product of a given shape, kept per stream: by the first
 * algorithm that its heuristics name. Shapes and types decide, not where matrices
 * lie. fused_product.c launches plans.
 */
#ifndef COXSWAIN_DEVICE_CUDA_FUSED_PLAN_H
#define COXSWAIN_DEVICE_CUDA_FUSED_PLAN_H

#include "worker/device/cuda/cuda_device.h"
#include "worker/device/cuda/fused_product.h"

/* All that a plan depends on. It has no gaps: keys are compared by memcmp. */
struct fused_key {
    int64_t m, n, k, a_row, b_row, c_row, a_transposed, b_transposed, tf32, operands, result, epilogue;
};

struct fused_plan {
    struct fused_plan *next;
    struct fused_key key;
    bool possible;
    cublasLtMatmulDesc_t job;
    cublasLtMatrixLayout_t left, right, result;
    cublasLtMatmulAlgo_t algorithm;
};

/* What lies so far apart counts as aligned to whatever an algorithm may ask for. */
#define FUSED_ALIGNMENT_MAX ((size_t)16)
/* What an algorithm is told of a matrix is what its shape says: some rows of one that is aligned lie so, wherever they begin. So
 * parts of a batch, or of a model, are summed in the order of the whole. */
size_t fused_row_alignment(int64_t row, enum stored stored);

/* The stream's plan, made at the first product of its shape. */
struct fused_plan *fused_plan_find(const struct cuda_call *call, const struct fused_product *job);
/* Sets where the product's bias and GELU's matrix lie. False: the stream has failed. */
bool fused_plan_point(const struct cuda_call *call, struct fused_plan *plan, const struct fused_product *job);
cublasStatus_t fused_plan_launch(const struct cuda_stream *stream, const struct fused_plan *plan,
                                 const struct cuda_product *product);
/* There is another way to such a product, which has not failed. */
bool fused_is_refused(cublasStatus_t status);

/* Makes the stream's handle, unless it is there. False: the stream has failed. */
bool fused_prepare(const struct cuda_call *call);

#endif
