/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes PNG and JPEG files into memory for tests.
 */
#ifndef COXSWAIN_TESTS_IMAGE_FILES_H
#define COXSWAIN_TESTS_IMAGE_FILES_H

#include <criterion/criterion.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

struct file_in_memory {
    unsigned char bytes[1 << 16];
    size_t length;
};

static inline void append_to_file(png_structp png, png_bytep bytes, size_t length)
{
    struct file_in_memory *file = png_get_io_ptr(png);
    cr_assert_leq(file->length + length, sizeof file->bytes);
    memcpy(file->bytes + file->length, bytes, length);
    file->length += length;
}

struct png_kind {
    int type, depth, interlace;
    const png_color *palette;
    int palette_size;
    const png_byte *palette_alpha; /* NULL: none; else as many as colours */
};

/* `rows`: height rows of `row_bytes` as the file has them. */
static inline void write_png(struct file_in_memory *file, const struct png_kind *kind, unsigned width, unsigned height,
                             const unsigned char *rows, size_t row_bytes)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_bytep pointers[64];
    cr_assert_leq(height, 64u);
    for (unsigned y = 0; y < height; y++)
        pointers[y] = (png_bytep)(rows + y * row_bytes);
    file->length = 0;
    cr_assert_eq(setjmp(png_jmpbuf(png)), 0);
    png_set_write_fn(png, file, append_to_file, NULL);
    png_set_IHDR(png, info, width, height, kind->depth, kind->type, kind->interlace, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (kind->palette)
        png_set_PLTE(png, info, kind->palette, kind->palette_size);
    if (kind->palette_alpha)
        png_set_tRNS(png, info, kind->palette_alpha, kind->palette_size, NULL);
    png_write_info(png, info);
    png_write_image(png, pointers);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
}

struct jpeg_kind {
    J_COLOR_SPACE space; /* of the samples that are given, and of the file unless it is RGB */
    int channels;
    bool progressive, without_adobe_marker;
    int orientation; /* 0: no EXIF */
};

static inline void write_orientation(struct jpeg_compress_struct *jpeg, int orientation)
{
    unsigned char exif[] = "Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0?\0\0\0\0\0\0";
    exif[6 + 8 + 2 + 9] = (unsigned char)orientation;
    jpeg_write_marker(jpeg, JPEG_APP0 + 1, exif, sizeof exif - 1);
}

static inline void write_jpeg(struct file_in_memory *file, const struct jpeg_kind *kind, unsigned width,
                              unsigned height, const unsigned char *samples)
{
    struct jpeg_error_mgr errors;
    struct jpeg_compress_struct jpeg;
    unsigned char *out = NULL;
    unsigned long length = 0;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &out, &length);
    jpeg.image_width = width;
    jpeg.image_height = height;
    jpeg.input_components = kind->channels;
    jpeg.in_color_space = kind->space;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 100, TRUE);
    if (kind->progressive)
        jpeg_simple_progression(&jpeg);
    if (kind->without_adobe_marker)
        jpeg.write_Adobe_marker = FALSE;
    jpeg_start_compress(&jpeg, TRUE);
    if (kind->orientation > 0)
        write_orientation(&jpeg, kind->orientation);
    for (unsigned y = 0; y < height; y++) {
        JSAMPROW row = (JSAMPROW)(samples + (size_t)y * width * (unsigned)kind->channels);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    cr_assert_leq(length, sizeof file->bytes);
    memcpy(file->bytes, out, length);
    file->length = length;
    free(out);
}

#endif
