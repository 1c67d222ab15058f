/* SPDX-License-Identifier: Apache-2.0
 *
 * Products by cuBLASLt, which finishes a product's rows before it writes them: a
 * bias, a GELU, a GELU's way back. How, is asked of its heuristics once for each
 * shape and stream, and kept: nothing is allocated on the device, and sums are
 * made in one order (no split that adds up in place), wherever the matrices lie.
 */
#ifndef COXSWAIN_DEVICE_CUDA_FUSED_PRODUCT_H
#define COXSWAIN_DEVICE_CUDA_FUSED_PRODUCT_H

#include "worker/device/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* FUSED_GELU: what the GELU is of goes to `gelu_input`, and c is the GELU of it before it was rounded. FUSED_GELU_BACKWARD: c
 * is the product times the slope of a GELU at `gelu_input`. */
enum fused_gelu { FUSED_NO_GELU, FUSED_GELU, FUSED_GELU_BACKWARD };

/* b and bias may lie anywhere, the rest in aligned memory from a row's beginning on. */
struct fused_product {
    struct cuda_product product; /* rows of b are packed, nothing is accumulated */
    const void *bias;            /* [n], stored as c is; or NULL */
    void *gelu_input;            /* [m,n], likewise */
    enum fused_gelu gelu;
};

/* False: c is as it was, since cuBLASLt is not to be used (ENV_GPU_LT), or has nothing for this shape (none that is float16, or
 * whose b does not fit CUDA_PATCHES_BYTES), or refuses it. */
bool cuda_multiply_fused(const struct cuda_call *call, const struct fused_product *job);

struct fused_plan;
/* A stream's; both may be NULL. */
void fused_plans_free(struct cuda_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
