/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes matrix products of a GPU's dense layers with cuBLASLt, which applies a bias, a GELU or
 * the gradient of a GELU before it writes the result. If cuBLASLt is not used or does not support
 * the product, cuda_multiply_fused returns false and the caller uses other kernels.
 *
 * cuBLASLt's heuristics are asked once per shape and stream, and the answer is kept. Nothing is
 * allocated on the device, and sums are computed in one order (no split that adds in place),
 * wherever the matrices lie.
 */
#ifndef COXSWAIN_DEVICE_CUDA_FUSED_PRODUCT_H
#define COXSWAIN_DEVICE_CUDA_FUSED_PRODUCT_H

#include "worker/device/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* FUSED_GELU: stores the product plus the bias in `gelu_input`, and its GELU in c; the GELU is computed
 * before that sum is rounded to its stored type. FUSED_GELU_BACKWARD: stores in c the product times the
 * derivative of the GELU at `gelu_input`, which it reads. */
enum fused_gelu { FUSED_NO_GELU, FUSED_GELU, FUSED_GELU_BACKWARD };

/* b and bias may lie at any address. The rows of a, c and gelu_input must be aligned as
 * fused_row_alignment (fused_plan.h) says for their length. */
struct fused_product {
    struct cuda_product product; /* rows of b are packed; accumulate is false */
    const void *bias;            /* [n], stored as c is; or NULL */
    void *gelu_input;            /* [m,n], stored as c is; not for FUSED_NO_GELU */
    enum fused_gelu gelu;
};

/* Returns false, with c unchanged, if cuBLASLt is not used (ENV_GPU_LT), does not support the
 * shape or type (no float16; b and bias together at most CUDA_PATCHES_BYTES; with a GELU, n must be
 * a multiple of 8), or refuses it. */
bool cuda_multiply_fused(const struct cuda_call *call, const struct fused_product *job);

struct fused_plan;
/* Frees the plans of a stream and its cuBLASLt handle, if it has any. */
void fused_plans_free(struct cuda_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
