/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/pieces.h"

#include <stdio.h>
#include <string.h>

void piece_name(const char *tensor, int64_t first_row, char name[PIECE_NAME_MAX])
{
    snprintf(name, PIECE_NAME_MAX, "%.120s#%lld", tensor, (long long)first_row);
}

static int64_t row_count(const struct safetensors_tensor *tensor)
{
    return tensor->rank > 0 ? tensor->shape[0] : 1;
}

/* Equal but for the number of rows. */
static bool has_rows_of(const struct safetensors_tensor *found, const struct safetensors_tensor *wanted)
{
    return found->dtype == wanted->dtype && found->rank == wanted->rank &&
           (wanted->rank < 2 ||
            memcmp(found->shape + 1, wanted->shape + 1, (wanted->rank - 1) * sizeof wanted->shape[0]) == 0);
}

/* A part of what is wanted, and what of the tensor it holds. */
struct part {
    const struct safetensors_tensor *tensor;
    int64_t first, rows;
};

static int find_part(const struct checkpoint_image *image, const struct safetensors_tensor *wanted, int64_t row,
                     struct part *ret_part, struct error *error)
{
    char name[PIECE_NAME_MAX];
    piece_name(wanted->name, row, name);
    const struct safetensors_tensor *whole = row == 0 ? checkpoint_image_find(image, wanted->name) : NULL;
    const struct safetensors_tensor *found = whole ? whole : checkpoint_image_find(image, name);
    if (found == NULL)
        return error_set(error, ERROR_INVALID, "tensor %s is missing; the model or the optimizer has changed",
                         row == 0 ? wanted->name : name);
    if (!has_rows_of(found, wanted) || (whole && row_count(whole) != row_count(wanted)) || row_count(found) < 1 ||
        row + row_count(found) > row_count(wanted))
        return error_set(error, ERROR_INVALID, "tensor %s has another shape or type; the model has changed",
                         wanted->name);
    *ret_part = (struct part){found, row, row_count(found)};
    return 0;
}

int checkpoint_read_rows(const struct checkpoint_image *image, const struct safetensors_tensor *wanted, int64_t first,
                         int64_t count, float *to, struct error *error)
{
    int64_t rows = row_count(wanted), row_elements = 1;
    for (unsigned i = 1; i < wanted->rank; i++)
        row_elements *= wanted->shape[i];
    struct part part = {0};
    for (int64_t row = 0; row < rows && row < first + count; row += part.rows) {
        if (find_part(image, wanted, row, &part, error) < 0)
            return -1;
        int64_t from = part.first > first ? part.first : first;
        int64_t end = part.first + part.rows < first + count ? part.first + part.rows : first + count;
        if (to != NULL && from < end)
            memcpy(to + (from - first) * row_elements,
                   (const float *)part.tensor->data + (from - part.first) * row_elements,
                   (size_t)((end - from) * row_elements) * sizeof *to);
    }
    return 0;
}
