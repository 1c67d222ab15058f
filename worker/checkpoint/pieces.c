/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/pieces.h"

#include <stdio.h>
#include <string.h>

#define SHAPE_TEXT_MAX 160

void piece_name(const char *tensor, int64_t first_row, char name[PIECE_NAME_MAX])
{
    snprintf(name, PIECE_NAME_MAX, "%.120s#%lld", tensor, (long long)first_row);
}

void piece_name_flat(const char *tensor, int64_t first_element, char name[PIECE_NAME_MAX])
{
    snprintf(name, PIECE_NAME_MAX, "%.120s@%lld", tensor, (long long)first_element);
}

static int64_t row_count(const struct safetensors_tensor *tensor)
{
    return tensor->rank > 0 ? tensor->shape[0] : 1;
}

static int64_t row_elements(const struct safetensors_tensor *tensor)
{
    int64_t elements = 1;
    for (unsigned i = 1; i < tensor->rank; i++)
        elements *= tensor->shape[i];
    return elements;
}

/* Equal but for the number of rows. */
static bool has_rows_of(const struct safetensors_tensor *found, const struct safetensors_tensor *wanted)
{
    return found->dtype == wanted->dtype && found->rank == wanted->rank &&
           (wanted->rank < 2 ||
            memcmp(found->shape + 1, wanted->shape + 1, (wanted->rank - 1) * sizeof wanted->shape[0]) == 0);
}

/* A part of what is wanted, and which elements of the tensor it holds. */
struct part {
    const struct safetensors_tensor *tensor;
    int64_t first, elements;
};

/* Writes the shape as "16 x 784"; "1" for a single number. */
static void shape_text(const struct safetensors_tensor *tensor, char text[SHAPE_TEXT_MAX])
{
    int length = snprintf(text, SHAPE_TEXT_MAX, "%lld", tensor->rank > 0 ? (long long)tensor->shape[0] : 1);
    for (unsigned i = 1; i < tensor->rank && length < SHAPE_TEXT_MAX; i++)
        length += snprintf(text + length, (size_t)(SHAPE_TEXT_MAX - length), " x %lld", (long long)tensor->shape[i]);
}

static int check_part(const struct safetensors_tensor *wanted, bool fits, struct part part, struct error *error)
{
    char found[SHAPE_TEXT_MAX], here[SHAPE_TEXT_MAX];
    shape_text(part.tensor, found);
    shape_text(wanted, here);
    if (!fits && strcmp(part.tensor->name, wanted->name) == 0 && part.tensor->dtype == wanted->dtype)
        return error_set(error, ERROR_INVALID, "tensor %s is %s in the checkpoint and %s in the model", wanted->name,
                         found, here);
    if (!fits || part.elements < 1 || part.first + part.elements > row_count(wanted) * row_elements(wanted))
        return error_set(error, ERROR_INVALID, "tensor %s has another shape or type; the model has changed",
                         wanted->name);
    return 0;
}

/* The part that begins at `first`. */
static int find_part(const struct checkpoint_image *image, const struct safetensors_tensor *wanted, int64_t first,
                     struct part *ret_part, struct error *error)
{
    char rows[PIECE_NAME_MAX], flat[PIECE_NAME_MAX];
    int64_t width = row_elements(wanted);
    piece_name(wanted->name, first / width, rows);
    piece_name_flat(wanted->name, first, flat);
    const struct safetensors_tensor *whole = first == 0 ? checkpoint_image_find(image, wanted->name) : NULL, *found;
    struct part part = {.first = first};
    bool fits;
    if (whole || (first % width == 0 && (found = checkpoint_image_find(image, rows)))) {
        part.tensor = whole ? whole : found;
        part.elements = row_count(part.tensor) * width;
        fits = has_rows_of(part.tensor, wanted) && (!whole || row_count(whole) == row_count(wanted));
    } else if ((found = checkpoint_image_find(image, flat))) {
        part.tensor = found;
        part.elements = row_count(found);
        fits = found->dtype == wanted->dtype && found->rank == 1;
    } else {
        return error_set(error, ERROR_INVALID, "tensor %s is missing; the model or the optimizer has changed",
                         first == 0           ? wanted->name
                         : first % width == 0 ? rows
                                              : flat);
    }
    *ret_part = part;
    return check_part(wanted, fits, part, error);
}

int checkpoint_read_elements(const struct checkpoint_image *image, const struct safetensors_tensor *wanted,
                             int64_t first, int64_t count, int64_t *from, float *to, struct error *error)
{
    struct part part = {.first = *from};
    for (int64_t at = *from; at < first + count; at += part.elements) {
        if (find_part(image, wanted, at, &part, error) < 0)
            return -1;
        int64_t begin = part.first > first ? part.first : first;
        int64_t end = part.first + part.elements < first + count ? part.first + part.elements : first + count;
        if (to != NULL && begin < end)
            memcpy(to + (begin - first), (const float *)part.tensor->data + (begin - part.first),
                   (size_t)(end - begin) * sizeof *to);
    }
    *from = part.first;
    return 0;
}

int checkpoint_read_rows(const struct checkpoint_image *image, const struct safetensors_tensor *wanted, int64_t first,
                         int64_t count, float *to, struct error *error)
{
    int64_t width = row_elements(wanted), from = 0;
    return checkpoint_read_elements(image, wanted, first * width, count * width, &from, to, error);
}
