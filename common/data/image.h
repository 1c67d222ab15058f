/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes PNG and JPEG files in memory into pixels of 8 bits, for the data format ImageFolder and for `cox generate`. The first bytes say
 * which of the two a file is; its name does not matter. The same file gives the same pixels on every machine.
 *
 * Every kind of file becomes pixels of 8 bits as follows. A palette becomes its colours; 16 bits become 8 (rounded); a JPEG of CMYK becomes
 * RGB. Alpha is left out unless four channels are wanted: it is not blended with a background. Grey is repeated for RGB. RGB becomes grey
 * as (19595 R + 38470 G + 7471 B + 32768) / 65536 (ITU-R BT.601). A JPEG is turned as its EXIF orientation says. Colour profiles and gamma
 * are ignored.
 *
 * A file that ends early or fails its checks is an error; no pixels are made up for it.
 */
#ifndef COXSWAIN_COMMON_DATA_IMAGE_H
#define COXSWAIN_COMMON_DATA_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Larger files and images are refused (ERROR_TOO_LARGE). */
#define IMAGE_BYTES_MAX ((size_t)128 << 20)
#define IMAGE_PIXELS_MAX ((int64_t)1 << 26)
#define IMAGE_SIDE_MAX 65500

struct image {
    int64_t width, height;
    int64_t channels; /* 1: grey, 2: grey and alpha, 3: RGB, 4: RGB and alpha */
    uint8_t *pixels;  /* height x width x channels; owned; NULL from image_look */
};

/* Decodes a file. `channels`: 1 for grey, 3 for RGB, 4 for RGB and alpha; ERROR_INVALID for others. ERROR_INVALID if it is neither PNG nor
 * JPEG, ERROR_CORRUPT if it is damaged, cut off or of a kind that the library cannot decode, ERROR_NO_SPACE without memory to convert
 * it. */
int image_read(const uint8_t *bytes, size_t length, int64_t channels, struct image *ret_image, struct error *error);

/* Reads the size and the channels alone, from the head of the file. The size is that of the turned image. */
int image_look(const uint8_t *bytes, size_t length, struct image *ret_image, struct error *error);

void image_release(struct image *image);

#endif
