/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/inference/picture.h"

#include <math.h>
#include <stdlib.h>

#include "common/base64.h"
#include "common/memory.h"

static const char shades[] = " .:-=+*#%@";

struct range {
    float low, high;
};

static struct range range_of(const float *pixels, int64_t count)
{
    struct range range = {INFINITY, -INFINITY};
    for (int64_t i = 0; i < count; i++) {
        range.low = fminf(range.low, pixels[i]);
        range.high = fmaxf(range.high, pixels[i]);
    }
    return range;
}

/* Returns the mean of those pixels of a square that are in the image, over `channels` channels from `first` on. */
static float mean_of(const float *pixels, const int64_t shape[3], int64_t top, int64_t left, int64_t side,
                     int64_t first, int64_t channels)
{
    double sum = 0;
    int64_t count = 0;
    for (int64_t y = top; y < top + side && y < shape[0]; y++)
        for (int64_t x = left; x < left + side && x < shape[1]; x++)
            for (int64_t c = first; c < first + channels; c++, count++)
                sum += (double)pixels[(y * shape[1] + x) * shape[2] + c];
    return (float)(sum / (double)count);
}

static char shade_of(float value, struct range range)
{
    const int last = (int)sizeof shades - 2;
    float share = range.high > range.low ? (value - range.low) / (range.high - range.low) : 0;
    int shade = share >= 1 ? last : (int)(share * (float)(last + 1));
    return shades[shade > last ? last : shade < 0 ? 0 : shade];
}

void picture_print(const float *pixels, const int64_t shape[3], struct buffer *text)
{
    struct range range = range_of(pixels, shape[0] * shape[1] * shape[2]);
    int64_t side = (shape[1] + PICTURE_SIDE - 1) / PICTURE_SIDE;
    for (int64_t y = 0; y < shape[0]; y += side) {
        for (int64_t x = 0; x < shape[1]; x += side) {
            char shade = shade_of(mean_of(pixels, shape, y, x, side, 0, shape[2]), range);
            buffer_format(text, "%c%c", shade, shade);
        }
        while (text->length > 0 && text->data[text->length - 1] == ' ')
            text->length--;
        buffer_append_byte(text, '\n', NULL);
    }
}

struct json *picture_json(const float *pixels, const int64_t shape[3])
{
    struct range range = range_of(pixels, shape[0] * shape[1] * shape[2]);
    int64_t longer = shape[0] > shape[1] ? shape[0] : shape[1];
    int64_t side = (longer + PICTURE_JSON_SIDE - 1) / PICTURE_JSON_SIDE;
    int64_t channels = shape[2] == 3 ? 3 : 1, averaged = shape[2] == 3 ? 1 : shape[2];
    int64_t height = (shape[0] + side - 1) / side, width = (shape[1] + side - 1) / side;
    float spread = range.high > range.low ? range.high - range.low : 1;
    SCOPED_FREE unsigned char *bytes = memory_allocate((size_t)(height * width), (size_t)channels);
    for (int64_t i = 0; i < height * width * channels; i++) {
        int64_t y = i / channels / width, x = i / channels % width;
        float mean = mean_of(pixels, shape, y * side, x * side, side, i % channels, averaged);
        float share = (mean - range.low) / spread;
        bytes[i] = (unsigned char)lrintf(255 * (share > 0 ? share < 1 ? share : 1 : 0)); /* also of a NaN */
    }
    SCOPED_FREE char *text = base64_encode(bytes, (size_t)(height * width * channels));
    struct json *picture = json_new_object();
    json_set_integer(picture, "height", height);
    json_set_integer(picture, "width", width);
    json_set_integer(picture, "channels", channels);
    json_set_string(picture, "pixels", text);
    return picture;
}
