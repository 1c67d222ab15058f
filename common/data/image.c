/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/image.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/data/jpeg_image.h"
#include "common/data/png_image.h"
#include "common/scope.h"

/* Files that people take for images, so that the message can name them. */
static const struct kind {
    const char *name;
    size_t offset;
    const char *magic;
} others[] = {{"GIF", 0, "GIF8"}, {"WebP", 8, "WEBP"}, {"BMP", 0, "BM"},
              {"TIFF", 0, "II*"}, {"TIFF", 0, "MM"},   {"HEIC or AVIF", 4, "ftyp"}};

static bool has_magic(const uint8_t *bytes, size_t length, size_t offset, const char *magic)
{
    size_t size = strlen(magic);
    return length >= offset + size && memcmp(bytes + offset, magic, size) == 0;
}

static int refuse_kind(const uint8_t *bytes, size_t length, struct error *error)
{
    if (length == 0)
        return error_set(error, ERROR_CORRUPT, "the file is empty");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (has_magic(bytes, length, others[i].offset, others[i].magic))
            return error_set(error, ERROR_INVALID, "is a %s file; convert it to PNG or JPEG", others[i].name);
    return error_set(error, ERROR_INVALID, "is neither a PNG nor a JPEG file");
}

static int decode(const uint8_t *bytes, size_t length, bool head_only, struct image *ret_image, struct error *error)
{
    if (length > IMAGE_BYTES_MAX)
        return error_set(error, ERROR_TOO_LARGE, "the file has %zu bytes; an image may have at most %zu", length,
                         IMAGE_BYTES_MAX);
    if (has_magic(bytes, length, 0, "\x89PNG"))
        return png_image_read(bytes, length, head_only, ret_image, error);
    if (has_magic(bytes, length, 0, "\xff\xd8"))
        return jpeg_image_read(bytes, length, head_only, ret_image, error);
    return refuse_kind(bytes, length, error);
}

static uint8_t grey_of(const uint8_t *colour)
{
    return (uint8_t)((19595u * colour[0] + 38470u * colour[1] + 7471u * colour[2] + 32768u) >> 16);
}

/* Writes a pixel of `to` channels, given one of `from`. */
static void convert_pixel(const uint8_t *pixel, int64_t from, uint8_t *ret_pixel, int64_t to)
{
    bool has_colour = from >= 3, has_alpha = from == 2 || from == 4;
    if (to == 1)
        *ret_pixel = has_colour ? grey_of(pixel) : *pixel;
    for (int64_t c = 0; c < 3 && to >= 3; c++)
        ret_pixel[c] = has_colour ? pixel[c] : *pixel;
    if (to == 4)
        ret_pixel[3] = has_alpha ? pixel[from - 1] : 255;
}

static int convert(struct image *image, int64_t channels, struct error *error)
{
    int64_t count = image->width * image->height;
    if (image->channels == channels)
        return 0;
    uint8_t *pixels = malloc((size_t)(count * channels));
    if (!pixels)
        return error_set(error, ERROR_NO_SPACE, "no memory for an image of %lldx%lld pixels", (long long)image->width,
                         (long long)image->height);
    for (int64_t i = 0; i < count; i++)
        convert_pixel(image->pixels + i * image->channels, image->channels, pixels + i * channels, channels);
    free(image->pixels);
    image->pixels = pixels;
    image->channels = channels;
    return 0;
}

int image_read(const uint8_t *bytes, size_t length, int64_t channels, struct image *ret_image, struct error *error)
{
    SCOPED(image_release) struct image image = {.pixels = NULL};
    if (channels != 1 && channels != 3 && channels != 4)
        return error_set(error, ERROR_INVALID,
                         "images can be read with 1 channel (grey), 3 (RGB) or 4 (RGB and alpha), not %lld",
                         (long long)channels);
    if (decode(bytes, length, false, &image, error) < 0 || convert(&image, channels, error) < 0)
        return -1;
    *ret_image = image;
    image.pixels = NULL;
    return 0;
}

int image_look(const uint8_t *bytes, size_t length, struct image *ret_image, struct error *error)
{
    return decode(bytes, length, true, ret_image, error);
}

void image_release(struct image *image)
{
    free(image->pixels);
    *image = (struct image){.pixels = NULL};
}
