/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/png_image.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

#define CHUNKS_MAX 1000                             /* those of text and metadata, which are not used */
#define CHUNK_BYTES_MAX ((png_alloc_size_t)8 << 20) /* of one of them */

/* Holds everything that changes after setjmp. */
struct decoder {
    png_structp png;
    png_infop info;
    const uint8_t *at, *end;
    struct image image;
    png_bytep *rows;
    char message[200];
};

static void fail(png_structp png, png_const_charp message)
{
    struct decoder *decoder = png_get_error_ptr(png);
    snprintf(decoder->message, sizeof decoder->message, "%s", message);
    png_longjmp(png, 1);
}

static void ignore_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void give_bytes(png_structp png, png_bytep bytes, size_t length)
{
    struct decoder *decoder = png_get_io_ptr(png);
    if ((size_t)(decoder->end - decoder->at) < length)
        png_error(png, "the file ends early");
    memcpy(bytes, decoder->at, length);
    decoder->at += length;
}

/* Every kind of pixel becomes one of 8 bits a channel. */
static void set_transformations(struct decoder *decoder)
{
    png_set_expand(decoder->png); /* palettes, fewer bits than 8, transparent colours */
    png_set_scale_16(decoder->png);
    (void)png_set_interlace_handling(decoder->png);
    png_read_update_info(decoder->png, decoder->info);
}

static void read_head(struct decoder *decoder)
{
    struct image *image = &decoder->image;
    png_set_user_limits(decoder->png, IMAGE_SIDE_MAX, IMAGE_SIDE_MAX);
    png_set_chunk_cache_max(decoder->png, CHUNKS_MAX);
    png_set_chunk_malloc_max(decoder->png, CHUNK_BYTES_MAX);
    png_set_keep_unknown_chunks(decoder->png, PNG_HANDLE_CHUNK_NEVER, NULL, 0);
    png_read_info(decoder->png, decoder->info);
    image->width = png_get_image_width(decoder->png, decoder->info);
    image->height = png_get_image_height(decoder->png, decoder->info);
    if (image->width * image->height > IMAGE_PIXELS_MAX)
        png_error(decoder->png, "too many pixels");
    set_transformations(decoder);
    image->channels = png_get_channels(decoder->png, decoder->info);
}

static void read_pixels(struct decoder *decoder)
{
    struct image *image = &decoder->image;
    size_t row = (size_t)(image->width * image->channels);
    if (png_get_rowbytes(decoder->png, decoder->info) != row)
        png_error(decoder->png, "its kind of pixels is not supported");
    image->pixels = malloc((size_t)image->height * row);
    decoder->rows = malloc((size_t)image->height * sizeof *decoder->rows);
    if (!image->pixels || !decoder->rows)
        png_error(decoder->png, "no memory for its pixels");
    for (int64_t y = 0; y < image->height; y++)
        decoder->rows[y] = image->pixels + (size_t)y * row;
    png_read_image(decoder->png, decoder->rows);
    png_read_end(decoder->png, NULL);
}

static int run(struct decoder *decoder, bool head_only)
{
    decoder->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, decoder, fail, ignore_warning);
    if (!decoder->png)
        return -1;
    if (setjmp(png_jmpbuf(decoder->png)) != 0)
        return -1;
    decoder->info = png_create_info_struct(decoder->png);
    if (!decoder->info)
        return -1;
    png_set_read_fn(decoder->png, decoder, give_bytes);
    read_head(decoder);
    if (!head_only)
        read_pixels(decoder);
    return 0;
}

int png_image_read(const uint8_t *bytes, size_t length, bool head_only, struct image *ret_image, struct error *error)
{
    struct decoder decoder = {.at = bytes, .end = bytes + length, .message = "libpng cannot be started"};
    int result = run(&decoder, head_only);
    bool too_large = decoder.image.width * decoder.image.height > IMAGE_PIXELS_MAX;
    png_destroy_read_struct(&decoder.png, &decoder.info, NULL);
    free(decoder.rows);
    if (result == 0) {
        *ret_image = decoder.image;
        return 0;
    }
    image_release(&decoder.image);
    if (too_large)
        return error_set(error, ERROR_TOO_LARGE, "the PNG image has more than %lld pixels; make it smaller",
                         (long long)IMAGE_PIXELS_MAX);
    return error_set(error, ERROR_CORRUPT, "the PNG file is damaged or cut off (%s); replace it, or take it out",
                     decoder.message);
}
