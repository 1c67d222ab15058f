/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws an image as characters for a terminal; --predict prints the example this way. There are ten
 * shades, darker for smaller values; colours are averaged; large images are reduced to at most
 * PICTURE_SIDE columns. For --json it gives the pixels instead.
 */
#ifndef COXSWAIN_INFERENCE_PICTURE_H
#define COXSWAIN_INFERENCE_PICTURE_H

#include <stdint.h>

#include "common/buffer.h"
#include "common/json.h"

#define PICTURE_SIDE 40
#define PICTURE_JSON_SIDE 64

/* Appends the image. `shape` is H W C, none of them 0. Each pixel is two characters, since
 * characters are taller than wide. */
void picture_print(const float *pixels, const int64_t shape[3], struct buffer *text);

/* Returns {"height","width","channels","pixels"}: bytes in base64, channels last, from 0 for the image's smallest value to 255 for its
 * largest; 1 or 3 channels, others are averaged; at most PICTURE_JSON_SIDE pixels high and wide. Free it with json_free. */
struct json *picture_json(const float *pixels, const int64_t shape[3]);

#endif
