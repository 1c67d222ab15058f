/* SPDX-License-Identifier: Apache-2.0
 *
 * How cuBLASLt makes a product of a shape, for each stream: the algorithm is that
 * of the device's record, where it has one for the shape (algorithm_record.h),
 * else the first that the heuristics name. Shapes and types decide, not where
 * matrices lie. fused_plan.c makes plans, fused_measure.c finds out which of the
 * algorithms is the quickest (quickest_launch.h), fused_product.c launches.
 */
#ifndef COXSWAIN_DEVICE_CUDA_FUSED_PLAN_H
#define COXSWAIN_DEVICE_CUDA_FUSED_PLAN_H

#include "worker/device/cuda/cuda_device.h"
#include "worker/device/cuda/fused_product.h"

/* All that a plan depends on, and what a record calls a product. */
struct fused_key {
    int64_t m, n, k, a_row, b_row, c_row, a_transposed, b_transposed, tf32, operands, result, epilogue;
};
_Static_assert(sizeof(struct fused_key) == sizeof(int64_t[ALGORITHM_NUMBERS]), "numbers, and no gaps between them");

struct fused_plan {
    struct fused_plan *next;
    struct fused_key key;
    bool possible, searched; /* the latter: by the search that is on, or was */
    cublasLtMatmulDesc_t job;
    cublasLtMatrixLayout_t left, right, result;
    cublasLtMatmulAlgo_t algorithm;
};

/* What lies so far apart counts as aligned to whatever an algorithm may ask for. */
#define FUSED_ALIGNMENT_MAX ((size_t)16)
/* What an algorithm is told of a matrix is what its shape says: some rows of one that is aligned lie so, wherever they begin. So
 * parts of a batch, or of a model, are summed in the order of the whole. */
size_t fused_row_alignment(int64_t row, enum stored stored);

/* The stream's, made at the first product of its shape. The device's record may be another since: then all are made anew. */
struct fused_plan *fused_plan_find(const struct cuda_call *call, const struct fused_product *job);
/* Where the product's bias and GELU's matrix lie. */
bool fused_plan_point(const struct cuda_call *call, struct fused_plan *plan, const struct fused_product *job);
/* By any algorithm. */
cublasStatus_t fused_plan_launch(const struct cuda_stream *stream, const struct fused_plan *plan,
                                 const struct cuda_product *product, const cublasLtMatmulAlgo_t *algorithm);
/* Up to `most` algorithms, the first being what the heuristics take for the quickest. Afterwards the plan has to be pointed. */
int fused_plan_candidates(const struct cuda_call *call, struct fused_plan *plan, int most,
                          cublasLtMatmulHeuristicResult_t *ret_found);
/* There is another way to such a product, which has not failed. */
bool fused_is_refused(cublasStatus_t status);

/* Tries the plan's algorithms on operands that lie as they are told, and notes the quickest in what the stream measures. */
void fused_plan_measure(const struct cuda_call *call, struct fused_plan *plan, const struct fused_product *job);

/* The stream's handle is there; if not the stream has failed. */
bool fused_prepare(const struct cuda_call *call);
/* Whether the device can compute by it; if not the stream may have failed. */
bool fused_choice_check(const struct cuda_call *call, const struct algorithm_choice *choice);

#endif
