/* SPDX-License-Identifier: Apache-2.0
 *
 * Provides what the CPU's three convolutions (forward, gradient of the input, gradient of the
 * weights) share: images with zeros around them, and the correlation of images with weights. The
 * correlation is the forward pass; on gradients spread by the stride, with rotated weights, it is
 * also the gradient of the input.
 */
#ifndef COXSWAIN_DEVICE_CPU_CONV2D_H
#define COXSWAIN_DEVICE_CPU_CONV2D_H

#include "worker/device/cpu/cpu.h"

/* A view of images [h,w,c]: each line has `left` zero pixels before it, and zeros after it up to
 * `width` pixels. */
struct padded_image {
    int64_t h, w, c, left, width;
};

/* Returns rows [first, first + rows) of the view, with line pitch width * c. Rows outside the
 * image are zeros. Without padding it returns a pointer into the image (all rows must lie
 * inside), else a copy in `buffer`. */
const float *padded_image_rows(const struct padded_image *view, const float *image, int64_t first, int64_t rows,
                               float *buffer);
bool padded_image_is_plain(const struct padded_image *view);

/* Returns how many rows of the view fit a buffer of CONV2D_BAND_BYTES. */
#define CONV2D_BAND_BYTES (256 * 1024)
int64_t padded_image_fitting(const struct padded_image *view);

/* Returns the length of the next piece if the `left` pixels of a line are cut into as few pieces
 * of at most `most` as possible, all of about the same length. */
static inline int64_t conv2d_piece(int64_t left, int64_t most)
{
    int64_t pieces = (left + most - 1) / most;
    return (left + pieces - 1) / pieces;
}

/* Computes out[B,oh,ow,o]: at (y, x) the sum over (kh, kw, channel) of the weight times the
 * image at ((y * step + kh - padding) / spread, the same for x), where the division is exact and
 * the pixel lies inside. One of step and spread is 1. */
struct correlation {
    struct padded_image view; /* left: padding / spread */
    int64_t b, kernel, step, spread, padding, oh, ow, o;
    /* The weight of output channel j, channel i, tap k is weight[j * column_stride + i *
     * channel_stride + k]; k counts from the end if `turned`. */
    const float *weight;
    int64_t column_stride, channel_stride;
    bool turned;
    const float *images, *bias, *mask;
    float *out, *workspace;
    bool relu;
};
void correlation_run(const struct cpu_call *call, const struct correlation *correlation);
/* Returns the floats of workspace, enough for every instruction set. */
int64_t correlation_workspace(int64_t kernel, int64_t c, int64_t o);

#endif
