/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes convolutions of two-byte values as products by cuBLAS on tensor cores (im2col): the
 * part of the image that an output reads becomes a row of a matrix. As many rows at a time as fit
 * the call's memory for patches, which is meant to stay in the cache. If the kernel is one pixel,
 * the image itself is that matrix.
 */
#ifndef COXSWAIN_DEVICE_CUDA_PATCHES_CUH
#define COXSWAIN_DEVICE_CUDA_PATCHES_CUH

#include "worker/device/cuda/stored.cuh"

/* A view of images [b,h,w,c] with dilation - 1 zeros between pixels and `padding` zeros around
 * them; windows of `kernel` at steps of `stride` give outputs [b,oh,ow]. */
struct patch_view {
    const uint16_t *images;
    int64_t b, h, w, c, kernel, stride, padding, dilation, oh, ow;
};

/* Return the values of a row of patches (kernel row, kernel column, channel), and its length
 * with the zeros that keep rows aligned. */
int64_t patch_taps(const struct patch_view *view);
int64_t patch_row(const struct patch_view *view);

/* Returns whether each window is a single pixel. */
bool patches_are_pixels(const struct conv2d_shape *shape);

/* Describes how the layer's weights are packed into rows [tap] of `outputs`. */
struct patch_weights {
    const float *weight; /* stored values, O C KH KW */
    uint16_t *packed;
    int64_t o, c, kernel, rows;
    bool turned; /* rotated by 180 degrees, and from O to C, for the gradient of the input */
};

/* Computes out[pixels,outputs] = the patches times the packed weights. */
void multiply_patches(const struct cuda_call *call, const struct patch_view *view, const struct patch_weights *weights,
                      float *out);
/* Computes sums[taps,outputs], in float32, = the transposed patches times the stored values
 * dy[pixels,outputs]. */
void sum_patches(const struct cuda_call *call, const struct patch_view *view, const float *dy, int64_t outputs,
                 float *sums);

#endif
