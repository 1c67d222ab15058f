/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"
#include "worker/data/dataset_format.h"
#include "worker/data/file_bytes.h"
#include "worker/data/finite_values.h"
#include "worker/data/npy.h"
#include "worker/data/pixels.h"
#include "worker/data/value_order.h"

struct npy_dataset {
    struct dataset base;
    struct file_bytes image_file, label_file;
    struct npy images, labels;
    char *image_path, *label_path; /* as the job has them */
};

static void npy_free(struct dataset *base)
{
    file_bytes_release(&((struct npy_dataset *)base)->image_file);
    file_bytes_release(&((struct npy_dataset *)base)->label_file);
    free(((struct npy_dataset *)base)->image_path);
    free(((struct npy_dataset *)base)->label_path);
}

static int open_array(const struct dataset_source *source, const char *path, struct file_bytes *file,
                      struct npy *ret_array, struct error *error)
{
    SCOPED_FREE char *full = NULL;
    if (!path)
        return error_set(error, ERROR_INVALID, "data.train: format NPY needs images and labels");
    if (dataset_path(source, path, &full, error) < 0 || file_bytes_open(full, file, error) < 0)
        return -1;
    if (npy_parse(file->bytes, file->length, ret_array, error) < 0)
        return error_wrap(error, "%s", full);
    if (ret_array->rank == 0 || ret_array->shape[0] == 0)
        return error_set(error, ERROR_INVALID, "%s: it holds no examples", full);
    return 0;
}

static bool is_float32(const struct npy *array)
{
    return array->kind == 'f' && array->item_bytes == 4;
}

static struct example_shape shape_of_example(const struct npy *array)
{
    struct example_shape shape = {.rank = array->rank - 1};
    memcpy(shape.dims, array->shape + 1, sizeof shape.dims);
    return shape;
}

static int check_images(const struct npy *images, const struct example_format *format, struct error *error)
{
    bool bytes = images->kind == 'u' && images->item_bytes == 1;
    if (format->input_type != ELEMENT_FLOAT32)
        return error_set(error, ERROR_INVALID, "data.format NPY gives numbers, but the model takes tokens");
    if (!bytes && !is_float32(images))
        return error_set(error, ERROR_INVALID, "images of type %c%u; save them as uint8 or float32", images->kind,
                         images->item_bytes);
    if (images->elements / images->shape[0] != format->input_elements)
        return error_set(error, ERROR_INVALID,
                         "an image has %lld values, the model's input %lld; change model.inputShape or the files",
                         (long long)(images->elements / images->shape[0]), (long long)format->input_elements);
    struct example_shape shape = shape_of_example(images);
    return value_order_check("images", &shape, &format->input_shape, error);
}

static int check_labels(const struct npy *labels, const struct example_format *format, struct error *error)
{
    bool fits = format->target_type == ELEMENT_INT32 ? labels->kind != 'f' : is_float32(labels);
    if (!fits)
        return error_set(error, ERROR_INVALID, "labels of type %c%u; save them as %s", labels->kind, labels->item_bytes,
                         format->target_type == ELEMENT_INT32 ? "integers" : "float32");
    if (labels->elements / labels->shape[0] != format->target_elements)
        return error_set(error, ERROR_INVALID, "%lld labels for an image, but the model takes %lld",
                         (long long)(labels->elements / labels->shape[0]), (long long)format->target_elements);
    struct example_shape shape = shape_of_example(labels);
    return value_order_check("labels", &shape, &format->target_shape, error);
}

static int fill(struct npy_dataset *dataset, const struct dataset_source *source, struct error *error)
{
    struct npy *images = &dataset->images, *labels = &dataset->labels;
    if (open_array(source, source->files->images, &dataset->image_file, images, error) < 0 ||
        open_array(source, source->files->labels, &dataset->label_file, labels, error) < 0 ||
        check_images(images, source->format, error) < 0 || check_labels(labels, source->format, error) < 0)
        return -1;
    if (images->shape[0] != labels->shape[0])
        return error_set(error, ERROR_INVALID, "data.train: %lld images but %lld labels", (long long)images->shape[0],
                         (long long)labels->shape[0]);
    dataset->base.count = images->shape[0];
    dataset->image_path = memory_copy_string(source->files->images);
    dataset->label_path = memory_copy_string(source->files->labels);
    const char *slash = strrchr(source->files->images, '/');
    snprintf(dataset->base.description, sizeof dataset->base.description, "arrays of %lld values (%c%u) from %s (%s)",
             (long long)source->format->input_elements, images->kind, images->item_bytes,
             slash ? slash + 1 : source->files->images, dataset->image_file.how);
    return 0;
}

static int npy_open(const struct dataset_source *source, struct dataset **ret_dataset, struct error *error)
{
    struct npy_dataset *dataset = memory_allocate(1, sizeof *dataset);
    dataset->base.kind = &dataset_npy;
    dataset->base.format = *source->format;
    if (fill(dataset, source, error) < 0) {
        dataset_free(&dataset->base);
        return -1;
    }
    *ret_dataset = &dataset->base;
    return 0;
}

static int check_finite(const char *path, int64_t index, const float *values, int64_t count, struct error *error)
{
    if (finite_values_check(values, 0, count, error) == 0)
        return 0;
    return error_wrap(error, "%s: example %lld", path, (long long)index);
}

static int read_label(const struct npy_dataset *dataset, int64_t index, void *target, struct error *error)
{
    const struct example_format *format = &dataset->base.format;
    int64_t count = format->target_elements;
    if (format->target_type == ELEMENT_FLOAT32) {
        memcpy(target, dataset->labels.data + (size_t)(index * count) * sizeof(float), (size_t)count * sizeof(float));
        return check_finite(dataset->label_path, index, target, count, error);
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t label = npy_integer_at(&dataset->labels, index * count + i);
        if (pixels_check_label(format, label, index, error) < 0)
            return error_wrap(error, "%s", dataset->label_path);
        ((int32_t *)target)[i] = (int32_t)label;
    }
    return 0;
}

static int npy_read(const struct dataset *base, int64_t index, void *input, void *target, struct error *error)
{
    const struct npy_dataset *dataset = (const struct npy_dataset *)base;
    int64_t count = base->format.input_elements;
    const uint8_t *image = dataset->images.data + index * count * dataset->images.item_bytes;
    float *values = input;
    if (dataset->images.item_bytes == sizeof(float)) {
        memcpy(values, image, (size_t)count * sizeof *values);
        if (check_finite(dataset->image_path, index, values, count, error) < 0)
            return -1;
    } else {
        for (int64_t i = 0; i < count; i++)
            values[i] = pixel_value(image[i]);
    }
    return read_label(dataset, index, target, error);
}

static int npy_check(const struct dataset *base, int64_t index, uint64_t round, struct error *error)
{
    const struct npy_dataset *dataset = (const struct npy_dataset *)base;
    (void)index;
    return file_bytes_check(&dataset->image_file, round, error) < 0
               ? -1
               : file_bytes_check(&dataset->label_file, round, error);
}

const struct dataset_kind dataset_npy = {npy_open, npy_free, npy_read, npy_check};
