/* SPDX-License-Identifier: Apache-2.0
 *
 * What the three convolutions share: images with zeros around them, and the
 * correlation of images with weights, which is both the forward pass and (on
 * gradients spread apart by the stride, with turned weights) the way back.
 */
#ifndef COXSWAIN_DEVICE_CPU_CONV2D_H
#define COXSWAIN_DEVICE_CPU_CONV2D_H

#include "worker/device/cpu/cpu.h"

/* Images [h,w,c] whose lines are seen with `left` zero pixels in front and are `width` pixels long, zeros behind. */
struct padded_image {
    int64_t h, w, c, left, width;
};

/* Rows [first, first + rows), which may lie outside (zeros), line pitch width * c. Without padding that is the image itself
 * (and rows lie inside), else a copy in `buffer`. */
const float *padded_image_rows(const struct padded_image *view, const float *image, int64_t first, int64_t rows,
                               float *buffer);
bool padded_image_is_plain(const struct padded_image *view);

/* How many rows of the view a buffer of that size holds. */
#define CONV2D_BAND_BYTES (256 * 1024)
int64_t padded_image_fitting(const struct padded_image *view);

/* For `left` of a line: as few pieces of at most `most` as there can be, of about the same length; the next one's. */
static inline int64_t conv2d_piece(int64_t left, int64_t most)
{
    int64_t pieces = (left + most - 1) / most;
    return (left + pieces - 1) / pieces;
}

/* out[B,oh,ow,o]: at (y, x) the sum over (kh, kw, channel) of the image at ((y * step + kh - padding) / spread, likewise x)
 * times weight, where these divide and lie inside. Of step and spread one is 1. */
struct correlation {
    struct padded_image view; /* left: padding / spread */
    int64_t b, kernel, step, spread, padding, oh, ow, o;
    /* Of output channel j, channel i, tap k: weight[j * column_stride + i * channel_stride + k], k counted from the end when
     * `turned`. */
    const float *weight;
    int64_t column_stride, channel_stride;
    bool turned;
    const float *images, *bias, *mask;
    float *out, *workspace;
    bool relu;
};
void correlation_run(const struct cpu_call *call, const struct correlation *correlation);
/* Floats of workspace, enough for every instruction set. */
int64_t correlation_workspace(int64_t kernel, int64_t c, int64_t o);

#endif
