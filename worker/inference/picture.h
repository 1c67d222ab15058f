/* SPDX-License-Identifier: Apache-2.0
 *
 * An image as characters, for terminals: the darker of ten shades the smaller the
 * value, colours averaged, large images reduced to at most PICTURE_SIDE columns.
 */
#ifndef COXSWAIN_INFERENCE_PICTURE_H
#define COXSWAIN_INFERENCE_PICTURE_H

#include <stdint.h>

#include "common/buffer.h"

#define PICTURE_SIDE 40

/* `shape`: H W C, none of them 0. Two characters a pixel, since characters are taller than wide. */
void picture_print(const float *pixels, const int64_t shape[3], struct buffer *text);

#endif
