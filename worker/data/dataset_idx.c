/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/data/file_bytes.h"
#include "common/data/file_name.h"
#include "common/data/idx.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/data/dataset_format.h"
#include "worker/data/value_order.h"

struct idx_dataset {
    struct dataset base;
    struct file_bytes image_file, label_file;
    const uint8_t *pixels, *labels;
    int64_t pixels_per_image;
    float values[256]; /* of a pixel */
};

static int open_idx(const struct dataset_source *source, const char *path, unsigned least_rank, struct file_bytes *file,
                    struct idx *ret_idx, struct error *error)
{
    SCOPED_FREE char *full = NULL;
    if (!path)
        return error_set(error, ERROR_INVALID, "%s: format IDX needs images and labels", dataset_section(source));
    if (dataset_path(source, path, &full, error) < 0)
        return -1;
    if (file_bytes_open(full, file, error) < 0)
        return -1;
    if (idx_parse(file->bytes, file->length, ret_idx, error) < 0)
        return error_wrap(error, "%s", full);
    if (ret_idx->rank < least_rank || (least_rank == 1 && ret_idx->rank != 1))
        return error_set(error, ERROR_INVALID, "%s: %u dimensions are not those of %s; are images and labels mixed up?",
                         full, ret_idx->rank, least_rank == 1 ? "labels" : "images");
    return 0;
}

static int check_order(const struct idx *images, const struct example_format *format, struct error *error)
{
    struct example_shape shape = {.rank = images->rank - 1};
    for (unsigned i = 0; i < shape.rank; i++)
        shape.dims[i] = images->dims[i + 1];
    return value_order_check("images", &shape, &format->input_shape, error);
}

static int check_pair(const struct dataset_source *source, const struct idx *images, const struct idx *labels,
                      struct error *error)
{
    const struct example_format *format = source->format;
    if (images->dims[0] != labels->dims[0])
        return error_set(error, ERROR_INVALID, "%s: %u images but %u labels", dataset_section(source), images->dims[0],
                         labels->dims[0]);
    if (images->dims[0] == 0)
        return error_set(error, ERROR_INVALID, "%s: the files hold no examples", dataset_section(source));
    size_t pixels = images->element_count / images->dims[0];
    if (format->input_type != ELEMENT_FLOAT32 || format->target_type != ELEMENT_INT32 || format->target_elements != 1)
        return error_set(error, ERROR_INVALID,
                         "data.format IDX gives images with one class each, but the model takes other "
                         "examples (gpt-bytes takes format Bytes)");
    if ((int64_t)pixels != format->input_elements)
        return error_set(error, ERROR_INVALID,
                         "an image has %zu values, the model's input %lld; change "
                         "model.inputShape or the files",
                         pixels, (long long)format->input_elements);
    if (check_order(images, format, error) < 0)
        return -1;
    for (size_t i = 0; i < labels->element_count; i++)
        if (labels->elements[i] >= format->classes)
            return error_set(error, ERROR_INVALID, "%s: label %zu is %u, but the model has %lld classes (0..%lld)",
                             source->files->labels, i, labels->elements[i], (long long)format->classes,
                             (long long)format->classes - 1);
    return 0;
}

static void describe(struct idx_dataset *dataset, const struct idx *images, const char *path)
{
    char shape[48] = "";
    for (unsigned i = 1; i < images->rank; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%u", i > 1 ? "x" : "", images->dims[i]);
    snprintf(dataset->base.description, sizeof dataset->base.description, "images %s, %lld classes, from %s (%s)",
             shape, (long long)dataset->base.format.classes, file_name_of(path), dataset->image_file.how);
}

static void idx_free(struct dataset *base)
{
    struct idx_dataset *dataset = (struct idx_dataset *)base;
    file_bytes_release(&dataset->image_file);
    file_bytes_release(&dataset->label_file);
}

static int fill(struct idx_dataset *dataset, const struct dataset_source *source, struct error *error)
{
    struct idx images, labels;
    if (open_idx(source, source->files->images, 2, &dataset->image_file, &images, error) < 0 ||
        open_idx(source, source->files->labels, 1, &dataset->label_file, &labels, error) < 0 ||
        check_pair(source, &images, &labels, error) < 0)
        return -1;
    dataset->base.count = images.dims[0];
    dataset->base.memory = file_bytes_in_memory(&dataset->image_file) + file_bytes_in_memory(&dataset->label_file);
    dataset->pixels = images.elements;
    dataset->labels = labels.elements;
    dataset->pixels_per_image = source->format->input_elements;
    for (int i = 0; i < 256; i++)
        dataset->values[i] = (float)i / 255.0f;
    describe(dataset, &images, source->files->images);
    return 0;
}

static int idx_open(const struct dataset_source *source, struct dataset **ret_dataset, struct error *error)
{
    struct idx_dataset *dataset = memory_allocate(1, sizeof *dataset);
    dataset->base.kind = &dataset_idx;
    dataset->base.format = *source->format;
    if (fill(dataset, source, error) < 0) {
        dataset_free(&dataset->base);
        return -1;
    }
    *ret_dataset = &dataset->base;
    return 0;
}

static int idx_read(const struct dataset *base, int64_t index, void *input, void *target, struct error *error)
{
    (void)error;
    const struct idx_dataset *dataset = (const struct idx_dataset *)base;
    const uint8_t *pixels = dataset->pixels + index * dataset->pixels_per_image;
    float *values = input;
    for (int64_t i = 0; i < dataset->pixels_per_image; i++)
        values[i] = dataset->values[pixels[i]];
    *(int32_t *)target = dataset->labels[index];
    return 0;
}

static int idx_check(const struct dataset *base, int64_t index, uint64_t round, struct error *error)
{
    const struct idx_dataset *dataset = (const struct idx_dataset *)base;
    (void)index;
    return file_bytes_check(&dataset->image_file, round, error) < 0
               ? -1
               : file_bytes_check(&dataset->label_file, round, error);
}

const struct dataset_kind dataset_idx = {.open = idx_open, .free = idx_free, .read = idx_read, .check = idx_check};
