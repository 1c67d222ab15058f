/* SPDX-License-Identifier: Apache-2.0
 *
 * Resizes an image to the size that a model takes: bilinear, with a filter that is widened when the image shrinks, so that every pixel
 * counts (a triangle of the output pixel's width on each side, as Pillow's). The arithmetic is in integers, so the result is the same on
 * every machine. An image that has the size already is not changed.
 */
#ifndef COXSWAIN_COMMON_DATA_IMAGE_RESIZE_H
#define COXSWAIN_COMMON_DATA_IMAGE_RESIZE_H

#include <stdbool.h>

#include "common/data/image.h"

/* Writes height x width x channels bytes. If the image has other proportions than width:height, it is stretched or, with `crop`, the
 * largest middle part with these proportions is used. `width` and `height` are at least 1. ERROR_NO_SPACE if there is no memory for
 * intermediate rows. */
int image_resize(const struct image *image, bool crop, int64_t width, int64_t height, uint8_t *ret_pixels,
                 struct error *error);

#endif
