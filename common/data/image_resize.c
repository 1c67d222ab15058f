/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/image_resize.h"

#include <stdlib.h>
#include <string.h>

#include "common/scope.h"
#include "common/vectorised.h"

#define ONE 65536 /* the sum of an output pixel's weights */

/* One dimension: `length` pixels from `from` on become `wanted`. */
struct axis {
    int64_t from, length, wanted;
    int64_t taps;      /* the most input pixels of an output pixel */
    int64_t *first;    /* of each output pixel, its first input pixel */
    uint32_t *weights; /* `taps` of each output pixel; those past its last input pixel are 0 */
};

static void axis_release(struct axis *axis)
{
    free(axis->first);
    free(axis->weights);
}

/* The middle of output pixel i is at (2i + 1) length / (2 wanted); distances are counted in parts of 1 / (2 wanted) of an input pixel. */
static int64_t weight_of(const struct axis *axis, int64_t output, int64_t input)
{
    int64_t reach = 2 * (axis->length > axis->wanted ? axis->length : axis->wanted);
    int64_t distance = llabs((2 * input + 1) * axis->wanted - (2 * output + 1) * axis->length);
    return distance < reach ? reach - distance : 0;
}

/* Rounds the running sum, so that the weights add up to ONE however many there are. */
static void fill_weights(const struct axis *axis, int64_t output)
{
    uint32_t *weights = axis->weights + output * axis->taps;
    int64_t first = axis->first[output], sum = 0, running = 0, given = 0;
    for (int64_t i = 0; i < axis->taps && first + i < axis->length; i++)
        sum += weight_of(axis, output, first + i);
    for (int64_t i = 0; i < axis->taps && first + i < axis->length; i++) {
        running += weight_of(axis, output, first + i);
        int64_t rounded = (2 * running * ONE + sum) / (2 * sum);
        weights[i] = (uint32_t)(rounded - given);
        given = rounded;
    }
}

static bool axis_init(struct axis *axis)
{
    int64_t longer = axis->length > axis->wanted ? axis->length : axis->wanted;
    axis->taps = 2 * longer / axis->wanted + 2;
    axis->first = malloc((size_t)axis->wanted * sizeof *axis->first);
    axis->weights = calloc((size_t)(axis->wanted * axis->taps), sizeof *axis->weights);
    if (!axis->first || !axis->weights)
        return false;
    for (int64_t i = 0; i < axis->wanted; i++) {
        /* The first pixel whose distance is below the reach, or one before it. */
        int64_t first = ((2 * i + 1) * axis->length - 2 * longer) / (2 * axis->wanted) - 1;
        first = first < 0 ? 0 : first;
        while (weight_of(axis, i, first) == 0)
            first++;
        axis->first[i] = first;
        fill_weights(axis, i);
    }
    return true;
}

VECTORISED static void add_row(uint32_t weight, const uint8_t *row, int64_t count, uint32_t *sums)
{
    for (int64_t i = 0; i < count; i++)
        sums[i] += weight * row[i];
}

/* Rows are resized before columns, since whole rows are added at a time. Writes fixed-point numbers: 8 bits before and 8 after the point. */
static void resize_rows(const struct axis *rows, int64_t output, const uint8_t *pixels, int64_t stride, int64_t count,
                        uint32_t *sums, uint16_t *ret_row)
{
    const uint32_t *weights = rows->weights + output * rows->taps;
    int64_t first = rows->first[output];
    for (int64_t i = 0; i < count; i++)
        sums[i] = 128;
    for (int64_t i = 0; i < rows->taps && first + i < rows->length; i++)
        if (weights[i] > 0)
            add_row(weights[i], pixels + (rows->from + first + i) * stride, count, sums);
    for (int64_t i = 0; i < count; i++)
        ret_row[i] = (uint16_t)(sums[i] >> 8);
}

static void resize_columns(const struct axis *columns, const uint16_t *row, int64_t channels, uint8_t *ret_pixels)
{
    for (int64_t x = 0; x < columns->wanted; x++) {
        const uint32_t *weights = columns->weights + x * columns->taps;
        int64_t first = columns->first[x], left = columns->length - first;
        int64_t taps = columns->taps < left ? columns->taps : left;
        for (int64_t c = 0; c < channels; c++) {
            uint32_t sum = 1u << 23;
            for (int64_t i = 0; i < taps; i++)
                sum += weights[i] * row[(first + i) * channels + c];
            ret_pixels[x * channels + c] = (uint8_t)(sum >> 24);
        }
    }
}

/* Shortens the side that is too long for the wanted proportions. */
static void crop_to(struct axis *columns, struct axis *rows)
{
    int64_t width = columns->length, height = rows->length;
    int64_t wide = width * rows->wanted, high = height * columns->wanted;
    if (wide > high)
        columns->length = (2 * high + rows->wanted) / (2 * rows->wanted);
    else if (high > wide)
        rows->length = (2 * wide + columns->wanted) / (2 * columns->wanted);
    columns->length += columns->length == 0;
    rows->length += rows->length == 0;
    columns->from = (width - columns->length) / 2;
    rows->from = (height - rows->length) / 2;
}

int image_resize(const struct image *image, bool crop, int64_t width, int64_t height, uint8_t *ret_pixels,
                 struct error *error)
{
    SCOPED(axis_release) struct axis columns = {.length = image->width, .wanted = width};
    SCOPED(axis_release) struct axis rows = {.length = image->height, .wanted = height};
    if (image->width == width && image->height == height) {
        memcpy(ret_pixels, image->pixels, (size_t)(width * height * image->channels));
        return 0;
    }
    if (crop)
        crop_to(&columns, &rows);
    int64_t channels = image->channels, count = columns.length * channels;
    SCOPED_FREE uint32_t *sums = malloc((size_t)count * sizeof *sums);
    SCOPED_FREE uint16_t *row = malloc((size_t)count * sizeof *row);
    if (!sums || !row || !axis_init(&columns) || !axis_init(&rows))
        return error_set(error, ERROR_NO_SPACE, "no memory to resize an image of %lldx%lld pixels to %lldx%lld",
                         (long long)image->width, (long long)image->height, (long long)width, (long long)height);
    for (int64_t y = 0; y < height; y++) {
        resize_rows(&rows, y, image->pixels + columns.from * channels, image->width * channels, count, sums, row);
        resize_columns(&columns, row, channels, ret_pixels + y * width * channels);
    }
    return 0;
}
