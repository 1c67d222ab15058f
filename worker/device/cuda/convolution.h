/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes a GPU's convolutions with cuDNN, if COXSWAIN_GPU_DNN asks for it. The convolution
 * operations (conv2d_*.cu) try these functions first.
 *
 * Each direction (forward, gradient of the input, gradient of the weights) has one algorithm, which
 * adds in one order for any shape (convolution_plan.c). cuDNN is asked once per shape and stream
 * whether it supports the shape, and the answer is kept; if it does not, the functions return false
 * and the caller computes the convolution with other kernels. Images are N H W C, as everywhere in
 * the worker; weights are repacked as O KH KW C in the operation's workspace. cuDNN's own workspace
 * is the stream's buffer for image patches, which the other kernels need anyway; so cuDNN allocates
 * only its handle on the device.
 */
#ifndef COXSWAIN_DEVICE_CUDA_CONVOLUTION_H
#define COXSWAIN_DEVICE_CUDA_CONVOLUTION_H

#include "worker/device/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Return false if cuDNN is not used (ENV_GPU_DNN), does not support the shape, or needs more
 * workspace than there is; then y, dx and dweight are unchanged, but op->workspace may not be.
 * The caller applies bias, rectifier or mask to y and dx, and computes dbias. Weight gradients
 * of two-byte values are rounded to that type before they are added. */
bool cuda_convolve_forward(const struct cuda_call *call, const struct conv2d_forward *op);
bool cuda_convolve_backward_data(const struct cuda_call *call, const struct conv2d_backward_data *op);
bool cuda_convolve_backward_weight(const struct cuda_call *call, const struct conv2d_backward_weight *op);

/* packed[o][kh][kw][c] = weight[o][c][kh][kw]; both are stored values. */
void cuda_pack_convolution(const struct cuda_call *call, const struct conv2d_shape *shape, const float *weight,
                           float *packed);
/* dweight[o][c][kh][kw], in float32, = or += packed[o][kh][kw][c], stored values. */
void cuda_unpack_convolution(const struct cuda_call *call, const struct conv2d_shape *shape, const float *packed,
                             float *dweight, bool accumulate);

struct convolution_plan;
/* Frees a stream's plans and its cuDNN handle. */
void convolution_plans_free(struct cuda_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
