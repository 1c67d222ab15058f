/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes PNG files for image.h; the only wrapper around libpng.
 */
#ifndef COXSWAIN_COMMON_DATA_PNG_IMAGE_H
#define COXSWAIN_COMMON_DATA_PNG_IMAGE_H

#include <stdbool.h>

#include "common/data/image.h"

/* Decodes a file into the channels that it has. `head_only`: the pixels stay NULL. */
int png_image_read(const uint8_t *bytes, size_t length, bool head_only, struct image *ret_image, struct error *error);

#endif
