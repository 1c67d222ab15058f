/* SPDX-License-Identifier: Apache-2.0
 *
 * What the three convolutions share: bands of a padded image that a tile reads
 * in place, and the correlation of images with packed weights, which is both the
 * forward pass and (on dilated gradients with turned weights) the way back.
 */
#ifndef COXSWAIN_DEVICE_CPU_CONV2D_H
#define COXSWAIN_DEVICE_CPU_CONV2D_H

#include "worker/device/cpu/cpu.h"

/* An image [h,w,c] seen with `dilation - 1` zeros between its pixels and `padding` zeros around (negative: cropped);
 * `width` pixels make a row of that view. */
struct padded_image {
    int64_t h, w, c, padding, dilation, width;
};

/* Rows [first, first + rows) of the view, row pitch width * c. Without padding or dilation that is the image itself,
 * else a copy in `buffer`. */
const float *padded_image_band(const struct padded_image *view, const float *image, int64_t first, int64_t rows,
                               float *buffer);
bool padded_image_is_plain(const struct padded_image *view);

/* Output rows whose input rows fit a band buffer; `out_rows` when no copy is needed. At least 1. */
#define CONV2D_BAND_BYTES (256 * 1024)
int64_t conv2d_band_rows(const struct padded_image *view, int64_t kernel, int64_t stride, int64_t out_rows);

/* out[B,oh,ow,o] from images [B,...] and weights packed as panels [o / columns][kernel][kernel * c][columns]. */
struct correlation {
    const struct gemm_kernel *gemm;
    struct padded_image view;
    int64_t b, kernel, stride, oh, ow, o;
    const float *images, *packed, *bias, *mask;
    float *out;
    bool relu;
};
void correlation_run(const struct cpu_call *call, const struct correlation *correlation);

#endif
