/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes JPEG files for image.h; the only wrapper around libjpeg-turbo. It uses the exact inverse transform, so that the pixels are the
 * same with and without the library's vector code.
 */
#ifndef COXSWAIN_COMMON_DATA_JPEG_IMAGE_H
#define COXSWAIN_COMMON_DATA_JPEG_IMAGE_H

#include <stdbool.h>

#include "common/data/image.h"

/* Decodes a file into grey or RGB, turned as its EXIF orientation says. If `head_only`, only reads its size and channels, and the pixels
 * stay NULL. Release *ret_image with image_release. ERROR_TOO_LARGE above IMAGE_PIXELS_MAX, ERROR_CORRUPT if the file cannot be decoded,
 * ERROR_NO_SPACE without memory to turn the image. */
int jpeg_image_read(const uint8_t *bytes, size_t length, bool head_only, struct image *ret_image, struct error *error);

/* Returns the EXIF orientation, 1 to 8, from the data of an APP1 marker; 1 (not turned) if the data has none. */
int jpeg_orientation(const uint8_t *data, size_t length);

#endif
