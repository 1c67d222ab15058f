/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/jpeg_image.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* After stdio.h, which it needs. */
#include <jerror.h>
#include <jpeglib.h>

#define SCANS_MAX 500 /* a small file with more of them would take minutes */
#define EXIF_HEAD 6   /* "Exif\0\0" */
#define ENTRY_BYTES 12
#define TAG_ORIENTATION 0x0112
#define TYPE_SHORT 3

/* Holds everything that changes after setjmp. */
struct decoder {
    struct jpeg_error_mgr errors; /* the library's pointer to this leads to the decoder */
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct jpeg;
    jmp_buf failed;
    struct image image;
    int orientation; /* of the markers before the pixels */
    uint8_t *row;    /* of CMYK */
    bool too_large;
    char message[JMSG_LENGTH_MAX];
};

/* ---------------------------------------------------------------- orientation */

static unsigned number_at(const uint8_t *bytes, bool little, unsigned count)
{
    unsigned value = 0;
    for (unsigned i = 0; i < count; i++)
        value = value << 8 | bytes[little ? count - 1 - i : i];
    return value;
}

int jpeg_orientation(const uint8_t *data, size_t length)
{
    if (length < EXIF_HEAD + 8 || memcmp(data, "Exif\0", EXIF_HEAD) != 0)
        return 1;
    const uint8_t *tiff = data + EXIF_HEAD;
    size_t size = length - EXIF_HEAD;
    bool little = tiff[0] == 'I';
    size_t directory = number_at(tiff + 4, little, 4);
    if (tiff[0] != tiff[1] || (tiff[0] != 'I' && tiff[0] != 'M') || directory > size - 2)
        return 1;
    unsigned count = number_at(tiff + directory, little, 2);
    for (size_t at = directory + 2; count > 0 && at + ENTRY_BYTES <= size; at += ENTRY_BYTES, count--) {
        unsigned value = number_at(tiff + at + 8, little, 2);
        if (number_at(tiff + at, little, 2) == TAG_ORIENTATION && number_at(tiff + at + 2, little, 2) == TYPE_SHORT)
            return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

static int orientation_of(const struct jpeg_decompress_struct *jpeg)
{
    for (jpeg_saved_marker_ptr marker = jpeg->marker_list; marker; marker = marker->next) {
        int orientation = jpeg_orientation(marker->data, marker->data_length);
        if (orientation != 1)
            return orientation;
    }
    return 1;
}

/* Orientations from 5 on turn rows into columns. */
static bool swaps_sides(int orientation)
{
    return orientation >= 5;
}

/* Returns where the pixel (x, y) of the turned image is in the stored image, which is `width` x `height`. */
static int64_t stored_place(int orientation, int64_t x, int64_t y, int64_t width, int64_t height)
{
    bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    bool from_bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    int64_t column = swaps_sides(orientation) ? y : x, row = swaps_sides(orientation) ? x : y;
    column = from_right ? width - 1 - column : column;
    row = from_bottom ? height - 1 - row : row;
    return row * width + column;
}

static int turn(struct image *image, int orientation, struct error *error)
{
    int64_t width = image->width, height = image->height, channels = image->channels;
    bool swaps = swaps_sides(orientation);
    struct image turned = {swaps ? height : width, swaps ? width : height, channels, NULL};
    if (image->pixels) {
        turned.pixels = malloc((size_t)(width * height * channels));
        if (!turned.pixels)
            return error_set(error, ERROR_NO_SPACE, "no memory to turn the image as its EXIF orientation says");
        uint8_t *to = turned.pixels;
        for (int64_t y = 0; y < turned.height; y++)
            for (int64_t x = 0; x < turned.width; x++, to += channels)
                memcpy(to, image->pixels + stored_place(orientation, x, y, width, height) * channels, (size_t)channels);
    }
    free(image->pixels);
    *image = turned;
    return 0;
}

/* ---------------------------------------------------------------- decoding */

static struct decoder *decoder_of(j_common_ptr common)
{
    return (struct decoder *)common->err;
}

static void fail(j_common_ptr common)
{
    struct decoder *decoder = decoder_of(common);
    common->err->format_message(common, decoder->message);
    longjmp(decoder->failed, 1);
}

static void fail_because(j_common_ptr common, const char *message)
{
    struct decoder *decoder = decoder_of(common);
    snprintf(decoder->message, sizeof decoder->message, "%s", message);
    longjmp(decoder->failed, 1);
}

/* After a warning the library would go on and make up missing pixels. So all warnings are errors but those that change no pixel. */
static void judge_message(j_common_ptr common, int level)
{
    int code = common->err->msg_code;
    if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_JFIF_MAJOR && code != JWRN_ADOBE_XFORM)
        fail(common);
}

static void print_nothing(j_common_ptr common)
{
    (void)common;
}

static void limit_scans(j_common_ptr common)
{
    if (common->is_decompressor && ((j_decompress_ptr)common)->input_scan_number > SCANS_MAX)
        fail_because(common, "it has too many scans");
}

static void read_head(struct decoder *decoder, const uint8_t *bytes, size_t length)
{
    struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
    jpeg_create_decompress(jpeg);
    jpeg->progress = &decoder->progress;
    jpeg_save_markers(jpeg, JPEG_APP0 + 1, 0xffff);
    jpeg_mem_src(jpeg, bytes, length);
    (void)jpeg_read_header(jpeg, TRUE);
    decoder->orientation = orientation_of(jpeg);
    decoder->image.width = jpeg->image_width;
    decoder->image.height = jpeg->image_height;
    decoder->image.channels = jpeg->jpeg_color_space == JCS_GRAYSCALE ? 1 : 3;
    decoder->too_large = decoder->image.width * decoder->image.height > IMAGE_PIXELS_MAX;
    if (decoder->too_large)
        fail_because((j_common_ptr)jpeg, "too many pixels");
}

/* Adobe's programs store inverted values, and mark such files with a marker of their own. */
static void convert_cmyk(const struct decoder *decoder, uint8_t *colours)
{
    uint8_t flip = decoder->jpeg.saw_Adobe_marker ? 0 : 255;
    for (int64_t x = 0; x < decoder->image.width; x++)
        for (int64_t c = 0; c < 3; c++) {
            unsigned light = (unsigned)(decoder->row[4 * x + c] ^ flip) * (decoder->row[4 * x + 3] ^ flip);
            colours[3 * x + c] = (uint8_t)((light + 127) / 255);
        }
}

static void read_pixels(struct decoder *decoder)
{
    struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
    struct image *image = &decoder->image;
    bool cmyk = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
    size_t row = (size_t)(image->width * image->channels);
    jpeg->out_color_space = cmyk ? JCS_CMYK : image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg->dct_method = JDCT_ISLOW;
    jpeg->do_block_smoothing = FALSE;
    (void)jpeg_start_decompress(jpeg);
    image->pixels = malloc((size_t)image->height * row);
    decoder->row = cmyk ? malloc((size_t)image->width * 4) : NULL;
    if (!image->pixels || (cmyk && !decoder->row))
        fail_because((j_common_ptr)jpeg, "no memory for its pixels");
    for (int64_t y = 0; y < image->height; y++) {
        uint8_t *colours = image->pixels + (size_t)y * row;
        JSAMPROW to = cmyk ? decoder->row : colours;
        (void)jpeg_read_scanlines(jpeg, &to, 1);
        if (cmyk)
            convert_cmyk(decoder, colours);
    }
    (void)jpeg_finish_decompress(jpeg);
}

static int run(struct decoder *decoder, const uint8_t *bytes, size_t length, bool head_only)
{
    decoder->jpeg.err = jpeg_std_error(&decoder->errors);
    decoder->errors.error_exit = fail;
    decoder->errors.emit_message = judge_message;
    decoder->errors.output_message = print_nothing;
    decoder->progress.progress_monitor = limit_scans;
    if (setjmp(decoder->failed) != 0)
        return -1;
    read_head(decoder, bytes, length);
    if (!head_only)
        read_pixels(decoder);
    return 0;
}

int jpeg_image_read(const uint8_t *bytes, size_t length, bool head_only, struct image *ret_image, struct error *error)
{
    struct decoder decoder = {.too_large = false};
    int result = run(&decoder, bytes, length, head_only);
    int orientation = decoder.orientation;
    jpeg_destroy_decompress(&decoder.jpeg);
    free(decoder.row);
    if (result == 0 && (orientation == 1 || turn(&decoder.image, orientation, error) == 0)) {
        *ret_image = decoder.image;
        return 0;
    }
    image_release(&decoder.image);
    if (result == 0) /* turn has set the error */
        return -1;
    if (decoder.too_large)
        return error_set(error, ERROR_TOO_LARGE, "the JPEG image has more than %lld pixels; make it smaller",
                         (long long)IMAGE_PIXELS_MAX);
    return error_set(error, ERROR_CORRUPT, "the JPEG file is damaged or cut off (%s); replace it, or take it out",
                     decoder.message);
}
