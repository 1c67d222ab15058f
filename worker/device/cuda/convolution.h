/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions by cuDNN. Each direction has one algorithm, which adds in one order
 * whatever the shape (convolution_plan.c); cuDNN is asked once for each shape and
 * stream whether it computes that shape, and the answer is kept. Images lie
 * as ours do (N H W C), weights are packed as O KH KW C in the operation's
 * workspace; cuDNN's own workspace is the stream's memory for patches, so nothing
 * is allocated on the device but a handle.
 */
#ifndef COXSWAIN_DEVICE_CUDA_CONVOLUTION_H
#define COXSWAIN_DEVICE_CUDA_CONVOLUTION_H

#include "worker/device/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* False: y, dx and dweight have not been touched, since cuDNN is not to be used (ENV_GPU_DNN), or has nothing for this shape, or
 * wants more workspace than there is; op->workspace may have been. What is left to do after y and dx (bias, rectifier, mask)
 * is the caller's, and so is dbias. Weight gradients of values in two bytes are rounded to such values before they are added. */
bool cuda_convolve_forward(const struct cuda_call *call, const struct conv2d_forward *op);
bool cuda_convolve_backward_data(const struct cuda_call *call, const struct conv2d_backward_data *op);
bool cuda_convolve_backward_weight(const struct cuda_call *call, const struct conv2d_backward_weight *op);

/* packed[o][kh][kw][c] = weight[o][c][kh][kw], values both */
void cuda_pack_convolution(const struct cuda_call *call, const struct conv2d_shape *shape, const float *weight,
                           float *packed);
/* dweight[o][c][kh][kw], float32, = or += the values packed[o][kh][kw][c] */
void cuda_unpack_convolution(const struct cuda_call *call, const struct conv2d_shape *shape, const float *packed,
                             float *dweight, bool accumulate);

struct convolution_plan;
/* A stream's plans, and its handle. */
void convolution_plans_free(struct cuda_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
