/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions of values in two bytes, as products that cuBLAS makes on
 * tensor cores: what each output sees of the image lies in a row of a matrix,
 * as many rows at a time as the call's memory for patches holds (which is meant to
 * stay in the cache). Where a window is one pixel the image is that matrix.
 */
#ifndef COXSWAIN_DEVICE_CUDA_PATCHES_CUH
#define COXSWAIN_DEVICE_CUDA_PATCHES_CUH

#include "worker/device/cuda/stored.cuh"

/* Images [b,h,w,c] seen with dilation - 1 zeros between pixels and `padding` zeros around; windows of `kernel` at steps
 * of `stride` give outputs [b,oh,ow]. */
struct patch_view {
    const uint16_t *images;
    int64_t b, h, w, c, kernel, stride, padding, dilation, oh, ow;
};

/* Of a row: (kernel row, kernel column, channel), and zeros up to a length that keeps rows aligned. */
int64_t patch_taps(const struct patch_view *view);
int64_t patch_row(const struct patch_view *view);

/* Whether a convolution's windows are its pixels. */
bool patches_are_pixels(const struct conv2d_shape *shape);

/* Where element [tap, output] of the packed weights, rows of `outputs`, comes from in the layer's. */
struct patch_weights {
    const float *weight; /* values O C KH KW */
    uint16_t *packed;
    int64_t o, c, kernel, rows;
    bool turned; /* by half a turn, and the other way round: from O to C */
};

/* out[pixels,outputs] = the patches times the packed weights. */
void multiply_patches(const struct cuda_call *call, const struct patch_view *view, const struct patch_weights *weights,
                      float *out);
/* sums[taps,outputs], float32 = the patches, transposed, times the values dy[pixels,outputs]. */
void sum_patches(const struct cuda_call *call, const struct patch_view *view, const float *dy, int64_t outputs,
                 float *sums);

#endif
