/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes and keeps the plans by which cuBLASLt computes products whose bias or GELU is applied in
 * the same kernel (fused_product.c, the only user). A plan uses the first algorithm that cuBLASLt's
 * heuristics propose for the product's shape and types. It does not depend on the matrices'
 * addresses, so products of equal shapes are always computed alike. Each stream has plans of its
 * own.
 */
#ifndef COXSWAIN_DEVICE_CUDA_FUSED_PLAN_H
#define COXSWAIN_DEVICE_CUDA_FUSED_PLAN_H

#include "worker/device/cuda/cuda_device.h"
#include "worker/device/cuda/fused_product.h"

/* Everything that a plan depends on. Has no gaps: keys are compared by memcmp. */
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

/* The largest alignment that is passed to cuBLASLt. */
#define FUSED_ALIGNMENT_MAX ((size_t)16)
/* Returns the alignment of a matrix as its shape implies it: that of any of its rows if the
 * matrix is aligned. Addresses are not considered, so that parts of a batch, or of a model, are
 * summed in the order of the whole. */
size_t fused_row_alignment(int64_t row, enum stored stored);

/* Returns the stream's plan; makes it at the first product of its shape. */
struct fused_plan *fused_plan_find(const struct cuda_call *call, const struct fused_product *job);
/* Sets the addresses of the product's bias and of the GELU's matrix. False: the stream has
 * failed. */
bool fused_plan_point(const struct cuda_call *call, struct fused_plan *plan, const struct fused_product *job);
cublasStatus_t fused_plan_launch(const struct cuda_stream *stream, const struct fused_plan *plan,
                                 const struct cuda_product *product);
/* Returns whether the status means "not supported", so that another kernel can compute the
 * product; if so, clears CUDA's last error. */
bool fused_is_refused(cublasStatus_t status);

/* Creates the stream's handle if there is none. False: the stream has failed. */
bool fused_prepare(const struct cuda_call *call);

#endif
