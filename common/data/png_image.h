/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes PNG files for image.h; the only wrapper around libpng.
 */
#ifndef COXSWAIN_COMMON_DATA_PNG_IMAGE_H
#define COXSWAIN_COMMON_DATA_PNG_IMAGE_H

#include <stdbool.h>

#include "common/data/image.h"

/* Decodes a file into the channels that it has. If `head_only`, only reads its size and channels, and the pixels stay NULL. Release
 * *ret_image with image_release. ERROR_TOO_LARGE above IMAGE_PIXELS_MAX, ERROR_CORRUPT if the file cannot be decoded. */
int png_image_read(const uint8_t *bytes, size_t length, bool head_only, struct image *ret_image, struct error *error);

#endif
