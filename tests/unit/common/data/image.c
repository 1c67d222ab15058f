/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/image.h"

#include "common/data/image_resize.h"
#include "common/data/jpeg_image.h"
#include "image_files.h"

static struct file_in_memory file;

static struct image decoded(int64_t channels)
{
    struct error error = ERROR_INIT;
    struct image image;
    cr_assert_eq(image_read(file.bytes, file.length, channels, &image, &error), 0, "%s", error.message);
    cr_assert_eq(image.channels, channels);
    return image;
}

static void check_pixels(int64_t channels, int64_t width, int64_t height, const uint8_t *wanted)
{
    struct image image = decoded(channels);
    cr_assert(image.width == width && image.height == height);
    for (int64_t i = 0; i < width * height * channels; i++)
        cr_expect_eq(image.pixels[i], wanted[i], "%d channels, value %d: %u instead of %u", (int)channels, (int)i,
                     image.pixels[i], wanted[i]);
    image_release(&image);
}

static void refused(size_t length, enum error_kind kind, const char *words)
{
    struct error error = ERROR_INIT;
    struct image image;
    cr_expect_eq(image_read(file.bytes, length, 3, &image, &error), -1, "%zu bytes", length);
    cr_expect_eq(error.kind, kind, "%s", error.message);
    cr_expect(strstr(error.message, words), "%s", error.message);
}

Test(image, png_of_8_bits_in_every_number_of_channels)
{
    const uint8_t rgb[] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30};
    write_png(&file, &(struct png_kind){PNG_COLOR_TYPE_RGB, 8, 0, NULL, 0, NULL}, 2, 2, rgb, 6);
    check_pixels(3, 2, 2, rgb);
    check_pixels(1, 2, 2, (const uint8_t[]){76, 150, 29, 18});
    check_pixels(4, 2, 2, (const uint8_t[]){255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255, 10, 20, 30, 255});
    const uint8_t rgba[] = {1, 2, 3, 0, 4, 5, 6, 128};
    write_png(&file, &(struct png_kind){PNG_COLOR_TYPE_RGB_ALPHA, 8, 1, NULL, 0, NULL}, 2, 1, rgba, 8);
    check_pixels(4, 2, 1, rgba);
    check_pixels(3, 2, 1, (const uint8_t[]){1, 2, 3, 4, 5, 6});
}

Test(image, png_of_other_depths_and_palettes)
{
    write_png(&file, &(struct png_kind){PNG_COLOR_TYPE_GRAY, 1, 0, NULL, 0, NULL}, 3, 1, (const uint8_t[]){0xa0}, 1);
    check_pixels(1, 3, 1, (const uint8_t[]){255, 0, 255});
    check_pixels(3, 3, 1, (const uint8_t[]){255, 255, 255, 0, 0, 0, 255, 255, 255});
    write_png(&file, &(struct png_kind){PNG_COLOR_TYPE_GRAY, 16, 0, NULL, 0, NULL}, 3, 1,
              (const uint8_t[]){0x80, 0x80, 0x00, 0xff, 0x00, 0x40}, 6);
    check_pixels(1, 3, 1, (const uint8_t[]){128, 1, 0});
    write_png(&file, &(struct png_kind){PNG_COLOR_TYPE_GRAY_ALPHA, 16, 0, NULL, 0, NULL}, 1, 1,
              (const uint8_t[]){0x40, 0x40, 0x20, 0x20}, 4);
    check_pixels(4, 1, 1, (const uint8_t[]){64, 64, 64, 32});
    const png_color colours[] = {{9, 8, 7}, {200, 100, 50}};
    write_png(&file, &(struct png_kind){PNG_COLOR_TYPE_PALETTE, 4, 0, colours, 2, (const png_byte[]){0, 77}}, 3, 1,
              (const uint8_t[]){0x10, 0x10}, 2);
    check_pixels(4, 3, 1, (const uint8_t[]){200, 100, 50, 77, 9, 8, 7, 0, 200, 100, 50, 77});
    check_pixels(3, 3, 1, (const uint8_t[]){200, 100, 50, 9, 8, 7, 200, 100, 50});
}

/* A left half of one colour and a right half of another: what a JPEG of the best quality keeps. */
static void write_halves(const struct jpeg_kind *kind, const uint8_t *left, const uint8_t *right)
{
    uint8_t samples[16 * 8 * 4];
    for (int i = 0; i < 16 * 8; i++)
        memcpy(samples + i * kind->channels, i % 16 < 8 ? left : right, (size_t)kind->channels);
    write_jpeg(&file, kind, 16, 8, samples);
}

static void check_near(const struct image *image, int64_t x, int64_t y, const int *wanted)
{
    const uint8_t *pixel = image->pixels + (y * image->width + x) * image->channels;
    for (int64_t c = 0; c < image->channels; c++)
        cr_expect(abs(pixel[c] - wanted[c]) <= 3, "(%d, %d) channel %d: %u instead of %d", (int)x, (int)y, (int)c,
                  pixel[c], wanted[c]);
}

Test(image, jpeg_of_every_kind)
{
    const struct {
        struct jpeg_kind kind;
        uint8_t left[4], right[4];
        int wanted_left[3], wanted_right[3];
    } rows[] = {
        {{JCS_RGB, 3, false, false, 0}, {200, 30, 40}, {20, 60, 220}, {200, 30, 40}, {20, 60, 220}},
        {{JCS_RGB, 3, true, false, 0}, {200, 30, 40}, {20, 60, 220}, {200, 30, 40}, {20, 60, 220}},
        {{JCS_GRAYSCALE, 1, false, false, 0}, {33}, {222}, {33, 33, 33}, {222, 222, 222}},
        {{JCS_CMYK, 4, false, false, 0}, {255, 0, 0, 255}, {255, 255, 255, 100}, {255, 0, 0}, {100, 100, 100}},
        {{JCS_CMYK, 4, false, true, 0}, {0, 255, 255, 0}, {0, 0, 0, 155}, {255, 0, 0}, {100, 100, 100}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_halves(&rows[i].kind, rows[i].left, rows[i].right);
        struct image image = decoded(3);
        cr_assert(image.width == 16 && image.height == 8);
        check_near(&image, 1, 4, rows[i].wanted_left);
        check_near(&image, 14, 4, rows[i].wanted_right);
        image_release(&image);
    }
}

/* A bright corner at the top left of what is stored goes to another corner. */
Test(image, jpeg_is_turned_as_its_orientation_says)
{
    static const struct {
        bool right, bottom, swaps;
    } corners[] = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}};
    for (int orientation = 1; orientation <= 8; orientation++) {
        uint8_t samples[16 * 8] = {0};
        bool swaps = corners[orientation - 1].swaps;
        for (int i = 0; i < 4 * 16; i++)
            samples[i] = i % 16 < 8 ? 255 : 0;
        write_jpeg(&file, &(struct jpeg_kind){JCS_GRAYSCALE, 1, false, false, orientation}, 16, 8, samples);
        struct image image = decoded(1), head;
        struct error error = ERROR_INIT;
        cr_assert_eq(image_look(file.bytes, file.length, &head, &error), 0);
        cr_assert(image.width == (swaps ? 8 : 16) && image.height == (swaps ? 16 : 8), "%d", orientation);
        cr_assert(head.width == image.width && head.height == image.height && !head.pixels);
        for (int corner = 0; corner < 4; corner++) {
            bool right = corner & 1, bottom = corner >> 1;
            bool bright = right == corners[orientation - 1].right && bottom == corners[orientation - 1].bottom;
            int64_t x = right ? image.width - 1 : 0, y = bottom ? image.height - 1 : 0;
            cr_expect_eq(image.pixels[y * image.width + x] > 128, bright, "orientation %d, corner %d", orientation,
                         corner);
        }
        image_release(&image);
    }
}

Test(image, orientation_in_broken_exif_is_none)
{
    const uint8_t little[] = "Exif\0\0II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0";
    cr_expect_eq(jpeg_orientation(little, sizeof little - 1), 6);
    for (size_t length = 0; length < sizeof little - 3; length++)
        cr_expect_eq(jpeg_orientation(little, length), 1, "%zu bytes", length);
    uint8_t far[sizeof little];
    memcpy(far, little, sizeof little);
    memset(far + 10, 0xff, 4);
    cr_expect_eq(jpeg_orientation(far, sizeof far - 1), 1);
}

Test(image, every_file_that_is_cut_off_is_refused)
{
    const uint8_t grey[4] = {1, 2, 3, 4};
    write_png(&file, &(struct png_kind){PNG_COLOR_TYPE_GRAY, 8, 0, NULL, 0, NULL}, 2, 2, grey, 2);
    for (size_t length = 4; length < file.length; length++)
        refused(length, ERROR_CORRUPT, "the PNG file is damaged or cut off");
    file.bytes[file.length - 17] ^= 1; /* in the check sum of the pixels */
    refused(file.length, ERROR_CORRUPT, "replace it, or take it out");
    for (int progressive = 0; progressive < 2; progressive++) {
        write_halves(&(struct jpeg_kind){JCS_RGB, 3, progressive, false, 0}, (const uint8_t[]){200, 30, 40},
                     (const uint8_t[]){20, 60, 220});
        for (size_t length = 2; length < file.length - 2; length++)
            refused(length, ERROR_CORRUPT, "the JPEG file is damaged or cut off");
    }
}

Test(image, other_files_are_named)
{
    static const struct {
        const char *bytes, *words;
    } rows[] = {{"GIF89a", "is a GIF file; convert it"},
                {"RIFF....WEBPVP8 ", "is a WebP file"},
                {"BM......", "is a BMP file"},
                {"\0\0\0 ftypheic", "is a HEIC or AVIF file"},
                {"hello", "is neither a PNG nor a JPEG file"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        file.length = i == 3 ? 12 : strlen(rows[i].bytes);
        memcpy(file.bytes, rows[i].bytes, file.length);
        refused(file.length, ERROR_INVALID, rows[i].words);
    }
    refused(0, ERROR_CORRUPT, "the file is empty");
    struct error error = ERROR_INIT;
    struct image image;
    cr_expect_eq(image_read(file.bytes, file.length, 2, &image, &error), -1);
    cr_expect(strstr(error.message, "not 2"), "%s", error.message);
}

/* The size in the header alone must not make a program allocate what it says. */
Test(image, sizes_beyond_the_ceiling_are_refused_before_their_pixels)
{
    write_png(&file, &(struct png_kind){PNG_COLOR_TYPE_GRAY, 8, 0, NULL, 0, NULL}, 1, 1, (const uint8_t[]){7}, 1);
    memcpy(file.bytes + 16, "\0\0\xf0\0\0\0\xf0", 8); /* width and height, then the check sum of the header */
    uint32_t sum = ~0u;
    for (int i = 12; i < 29; i++)
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (((sum ^ (uint32_t)file.bytes[i] >> bit) & 1) ? 0xedb88320u : 0);
    for (int i = 0; i < 4; i++)
        file.bytes[29 + i] = (uint8_t)(~sum >> (24 - 8 * i));
    refused(file.length, ERROR_TOO_LARGE, "the PNG image has more than 67108864 pixels; make it smaller");
    write_halves(&(struct jpeg_kind){JCS_GRAYSCALE, 1, false, false, 0}, (const uint8_t[]){1}, (const uint8_t[]){2});
    for (size_t i = 0; i + 9 < file.length; i++)
        if (file.bytes[i] == 0xff && file.bytes[i + 1] == 0xc0)
            memset(file.bytes + i + 5, 0xf0, 4); /* height and width */
    refused(file.length, ERROR_TOO_LARGE, "has more than 67108864 pixels; make it smaller");
}

/* ---------------------------------------------------------------- resizing */

static void check_resize(struct image image, bool crop, int64_t width, int64_t height, const uint8_t *wanted)
{
    struct error error = ERROR_INIT;
    uint8_t pixels[64];
    cr_assert_eq(image_resize(&image, crop, width, height, pixels, &error), 0, "%s", error.message);
    for (int64_t i = 0; i < width * height * image.channels; i++)
        cr_expect_eq(pixels[i], wanted[i], "%dx%d value %d: %u instead of %u", (int)width, (int)height, (int)i,
                     pixels[i], wanted[i]);
}

Test(image, resizing_takes_every_pixel_into_account)
{
    uint8_t row[] = {0, 40, 80, 120, 160, 200, 240, 255};
    check_resize((struct image){8, 1, 1, row}, false, 8, 1, row);
    /* A triangle of width 4 around 1 and 3: weights 1/8 3/8 3/8 1/8, at the edge 3 3 1 of 7. */
    check_resize((struct image){4, 1, 1, row}, false, 2, 1, (const uint8_t[]){29, 91});
    check_resize((struct image){1, 4, 1, row}, false, 1, 2, (const uint8_t[]){29, 91});
    /* Twice as large: thirds and quarters of neighbours. */
    check_resize((struct image){2, 1, 1, row}, false, 4, 1, (const uint8_t[]){0, 10, 30, 40});
    uint8_t colours[] = {10, 20, 30, 30, 60, 90};
    check_resize((struct image){2, 1, 3, colours}, false, 1, 1, (const uint8_t[]){20, 40, 60});
    uint8_t white[50 * 3];
    memset(white, 255, sizeof white);
    check_resize((struct image){50, 3, 1, white}, false, 7, 5,
                 (const uint8_t[]){255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
                                   255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
                                   255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255});
}

Test(image, cropping_takes_the_middle)
{
    uint8_t wide[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    check_resize((struct image){6, 2, 1, wide}, true, 2, 2, (const uint8_t[]){3, 4, 9, 10});
    check_resize((struct image){2, 6, 1, wide}, true, 2, 2, (const uint8_t[]){5, 6, 7, 8});
    check_resize((struct image){1, 12, 1, wide}, true, 3, 1, (const uint8_t[]){6, 6, 6});
}

/* Extreme proportions: the arithmetic holds. */
Test(image, resizing_of_a_very_long_row)
{
    uint8_t *row = malloc(65500);
    struct error error = ERROR_INIT;
    uint8_t pixels[2];
    memset(row, 0, 32750);
    memset(row + 32750, 200, 32750);
    cr_assert_eq(image_resize(&(struct image){65500, 1, 1, row}, false, 1, 1, pixels, &error), 0);
    cr_expect_eq(pixels[0], 100);
    cr_assert_eq(image_resize(&(struct image){1, 65500, 1, row}, false, 1, 2, pixels, &error), 0);
    cr_expect(pixels[0] < 40 && pixels[1] > 160, "%u %u", pixels[0], pixels[1]);
    free(row);
}
