/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws an image as characters for a terminal; --predict prints the example this way. There are ten
 * shades, darker for smaller values; colours are averaged; large images are reduced to at most
 * PICTURE_SIDE columns.
 */
#ifndef COXSWAIN_INFERENCE_PICTURE_H
#define COXSWAIN_INFERENCE_PICTURE_H

#include <stdint.h>

#include "common/buffer.h"

#define PICTURE_SIDE 40

/* Appends the image. `shape` is H W C, none of them 0. Each pixel is two characters, since
 * characters are taller than wide. */
void picture_print(const float *pixels, const int64_t shape[3], struct buffer *text);

#endif
