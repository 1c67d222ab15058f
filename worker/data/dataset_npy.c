/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/data/file_bytes.h"
#include "common/data/file_name.h"
#include "common/data/npy.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/data/dataset_format.h"
#include "worker/data/finite_values.h"
#include "worker/data/pixels.h"
#include "worker/data/value_order.h"

/* One file, with an element of its first dimension for each example. */
struct column {
    struct file_bytes file;
    struct npy array;
    char *path; /* as the job has it; owned */
};

struct npy_dataset {
    struct dataset base;
    unsigned input_count;
    struct column inputs[EXAMPLE_INPUTS_MAX]; /* in the model's order */
    struct column labels;
};

static void column_release(struct column *column)
{
    file_bytes_release(&column->file);
    free(column->path);
}

static void npy_free(struct dataset *base)
{
    struct npy_dataset *dataset = (struct npy_dataset *)base;
    for (unsigned i = 0; i < dataset->input_count; i++)
        column_release(&dataset->inputs[i]);
    column_release(&dataset->labels);
}

/* ---------------------------------------------------------------- opening */

static int open_column(const struct dataset_source *source, const char *path, struct column *column,
                       struct error *error)
{
    SCOPED_FREE char *full = NULL;
    if (!path)
        return error_set(error, ERROR_INVALID, "%s: format NPY needs labels, and images or inputs",
                         dataset_section(source));
    column->path = memory_copy_string(path);
    if (dataset_path(source, path, &full, error) < 0)
        return -1;
    if (file_bytes_open(full, &column->file, error) < 0)
        return -1;
    if (npy_parse(column->file.bytes, column->file.length, &column->array, error) < 0)
        return error_wrap(error, "%s", full);
    if (column->array.rank == 0 || column->array.shape[0] == 0)
        return error_set(error, ERROR_INVALID, "%s: it holds no examples", full);
    return 0;
}

static bool has_pixels(const struct npy *array)
{
    return array->kind == 'u' && array->item_bytes == 1;
}

static int scale_of(const struct npy *array)
{
    return has_pixels(array) ? 255 : 1;
}

static bool has_floats(const struct npy *array)
{
    return array->kind == 'f' && npy_has_numbers(array);
}

static int64_t values_of_example(const struct npy *array)
{
    return array->elements / array->shape[0];
}

static struct example_shape shape_of_example(const struct npy *array)
{
    struct example_shape shape = {.rank = array->rank - 1};
    memcpy(shape.dims, array->shape + 1, sizeof shape.dims);
    return shape;
}

static int check_images(const struct npy *images, const struct dataset_source *source, struct error *error)
{
    const struct example_format *format = source->format;
    if (format->input_type != ELEMENT_FLOAT32)
        return error_set(error, ERROR_INVALID, "data.format NPY gives numbers, but the model takes tokens");
    if (!npy_has_numbers(images))
        return error_set(error, ERROR_INVALID, "images of type %c%u; save them as uint8, float32 or float64",
                         images->kind, images->item_bytes);
    if (values_of_example(images) != format->input_elements)
        return error_set(error, ERROR_INVALID, "an example has %lld values, but the model's input %lld; change %s",
                         (long long)values_of_example(images), (long long)format->input_elements,
                         source->is_new ? "the file" : "model.inputShape or the files");
    struct example_shape shape = shape_of_example(images);
    return value_order_check("images", &shape, &format->input_shape, error);
}

/* Compares a file with the input of a program that it is for. */
static int check_input(const struct column *column, const struct example_input *input, struct error *error)
{
    const struct npy *array = &column->array;
    bool fits = input->type == ELEMENT_INT32 ? array->kind != 'f' : has_pixels(array) || has_floats(array);
    if (!fits)
        return error_set(error, ERROR_INVALID,
                         "%s has values of type %c%u, but the input %s of the model is %s; save them as %s",
                         column->path, array->kind, array->item_bytes, input->name,
                         input->type == ELEMENT_INT32 ? "int32" : "float32",
                         input->type == ELEMENT_INT32 ? "integers" : "float32, or pixels as uint8");
    if (values_of_example(array) != input->elements)
        return error_set(
            error, ERROR_INVALID,
            "%s has %lld values for each example, but the input %s of the model takes %lld; change the file, "
            "or export the program again with examples of this size",
            column->path, (long long)values_of_example(array), input->name, (long long)input->elements);
    struct example_shape shape = shape_of_example(array);
    return value_order_check(input->name, &shape, &input->shape, error);
}

static int check_labels(const struct npy *labels, const struct example_format *format, struct error *error)
{
    bool fits = format->target_type == ELEMENT_INT32 ? labels->kind != 'f' : has_floats(labels);
    if (!fits)
        return error_set(error, ERROR_INVALID, "labels of type %c%u; save them as %s", labels->kind, labels->item_bytes,
                         format->target_type == ELEMENT_INT32 ? "integers" : "float32");
    if (values_of_example(labels) != format->target_elements)
        return error_set(error, ERROR_INVALID, "%lld labels for an example, but the model takes %lld",
                         (long long)values_of_example(labels), (long long)format->target_elements);
    struct example_shape shape = shape_of_example(labels);
    return value_order_check("labels", &shape, &format->target_shape, error);
}

static const char *file_of(const struct data_files *files, const char *name)
{
    for (unsigned i = 0; i < files->input_count; i++)
        if (strcmp(files->inputs[i].name, name) == 0)
            return files->inputs[i].file;
    return NULL;
}

static bool has_input(const struct example_format *format, const char *name)
{
    for (unsigned i = 0; i < format->input_count; i++)
        if (strcmp(format->inputs[i].name, name) == 0)
            return true;
    return false;
}

/* Writes "user, item and price". */
static void list_names(const struct example_format *format, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < format->input_count && length < size; i++) {
        const char *between = i == 0 ? "" : i + 1 < format->input_count ? ", " : " and ";
        length += (size_t)snprintf(text + length, size - length, "%s%s", between, format->inputs[i].name);
    }
}

/* Whether the job names a file for each input and no other. */
static int check_names(const struct dataset_source *source, struct error *error)
{
    const struct data_files *files = source->files;
    const struct example_format *format = source->format;
    char names[256];
    list_names(format, names, sizeof names);
    if (format->input_count == 0)
        return error_set(error, ERROR_INVALID,
                         "%s.inputs is for programs, but the model is one of layers; name its file by images",
                         dataset_section(source));
    for (unsigned i = 0; i < files->input_count; i++)
        if (!has_input(format, files->inputs[i].name))
            return error_set(error, ERROR_INVALID, "%s.inputs: the model has no input %s; it takes %s",
                             dataset_section(source), files->inputs[i].name, names);
    for (unsigned i = 0; i < format->input_count; i++)
        if (file_of(files, format->inputs[i].name) == NULL)
            return error_set(error, ERROR_INVALID,
                             "%s.inputs: there is no file for the input %s of the model; it takes %s",
                             dataset_section(source), format->inputs[i].name, names);
    return 0;
}

/* Without labels there is nothing that says how many examples a file has. */
static int check_is_many(const struct dataset_source *source, const struct npy *array, struct error *error)
{
    bool is_one = array->elements == source->format->input_elements && values_of_example(array) != array->elements;
    return source->is_new && is_one
               ? error_set(error, ERROR_INVALID, "it has the values of one example; give it a first dimension of 1")
               : 0;
}

/* `images` names the file of an only input. */
static int open_only_input(struct npy_dataset *dataset, const struct dataset_source *source, struct error *error)
{
    const struct example_format *format = source->format;
    char names[256];
    list_names(format, names, sizeof names);
    if (format->input_count > 1)
        return error_set(error, ERROR_INVALID, "the model takes %s; name a file for each of them in %s.inputs", names,
                         dataset_section(source));
    dataset->input_count = 1;
    if (open_column(source, source->files->images, &dataset->inputs[0], error) < 0 ||
        check_is_many(source, &dataset->inputs[0].array, error) < 0)
        return -1;
    return format->input_type == ELEMENT_INT32 && format->input_count == 1
               ? check_input(&dataset->inputs[0], &format->inputs[0], error)
               : check_images(&dataset->inputs[0].array, source, error);
}

static int open_inputs(struct npy_dataset *dataset, const struct dataset_source *source, struct error *error)
{
    const struct example_format *format = source->format;
    if (source->files->input_count == 0)
        return open_only_input(dataset, source, error);
    if (check_names(source, error) < 0)
        return -1;
    dataset->input_count = format->input_count;
    for (unsigned i = 0; i < format->input_count; i++)
        if (open_column(source, file_of(source->files, format->inputs[i].name), &dataset->inputs[i], error) < 0 ||
            check_input(&dataset->inputs[i], &format->inputs[i], error) < 0)
            return -1;
    return 0;
}

/* ---------------------------------------------------------------- against the training files */

/* Returns 255 if the values of the training file are divided by it, else 1; 0: neither is it known, nor can the file be read. */
static int training_scale(const struct dataset_source *source, const char *training_path)
{
    struct column training = {0};
    struct dataset_source of_training = *source;
    if (source->known && source->known->input_scale > 0)
        return source->known->input_scale;
    of_training.is_new = false;
    bool is_read = open_column(&of_training, training_path, &training, NULL) == 0;
    int scale = is_read ? scale_of(&training.array) : 0;
    column_release(&training);
    return scale;
}

/* Where the values of an input are pixels in one file and in the other not, only one of them is divided by 255. */
static int compare_scale(const struct dataset_source *source, const struct column *column, const char *training_path,
                         struct error *error)
{
    int scale = training_scale(source, training_path);
    bool pixels = scale == 255;
    if (scale == 0 || scale == scale_of(&column->array))
        return 0;
    return error_set(error, ERROR_INVALID,
                     "%s is of type %c%u, but the training file %s is %suint8, whose values alone are divided by 255; "
                     "save it as %s, too",
                     column->path, column->array.kind, column->array.item_bytes, training_path, pixels ? "" : "not ",
                     pixels ? "uint8" : "float32");
}

/* The files of other formats say what their values are. */
static int compare_with_format(const struct dataset_source *source, const struct column *column, struct error *error)
{
    bool pixels = source->spec->format == DATA_FORMAT_IDX || source->spec->format == DATA_FORMAT_CIFAR10;
    if (source->spec->format == DATA_FORMAT_CSV && has_pixels(&column->array))
        return error_set(error, ERROR_INVALID,
                         "%s is of type u1, whose values are divided by 255, which those of the training table are "
                         "not; save it as float32",
                         column->path);
    if (pixels && column->array.kind != 'f' && !has_pixels(&column->array))
        return error_set(error, ERROR_INVALID,
                         "%s is of type %c%u, whose values are not divided by 255, but those of the training files "
                         "are; save it as uint8",
                         column->path, column->array.kind, column->array.item_bytes);
    return 0;
}

/* Files to test with, and new ones, mean by their numbers what the training files mean. */
static int compare_with_training(const struct npy_dataset *dataset, const struct dataset_source *source,
                                 struct error *error)
{
    const struct example_format *format = &dataset->base.format;
    const struct data_files *training = &source->spec->train;
    for (unsigned i = 0; i < dataset->input_count && source->files != training; i++) {
        bool integers = format->input_count > 0 && format->inputs[i].type == ELEMENT_INT32;
        const char *path = format->input_count > 0 && training->input_count > 0
                               ? file_of(training, format->inputs[i].name)
                               : training->images;
        if (integers || (source->spec->format == DATA_FORMAT_NPY && !path))
            continue;
        if ((source->spec->format == DATA_FORMAT_NPY ? compare_scale(source, &dataset->inputs[i], path, error)
                                                     : compare_with_format(source, &dataset->inputs[i], error)) < 0)
            return -1;
    }
    return 0;
}

static void describe(struct npy_dataset *dataset)
{
    const struct column *first = &dataset->inputs[0];
    char *text = dataset->base.description;
    size_t size = sizeof dataset->base.description;
    if (dataset->input_count == 1) {
        snprintf(text, size, "arrays of %lld values (%c%u) from %s (%s)",
                 (long long)dataset->base.format.input_elements, first->array.kind, first->array.item_bytes,
                 file_name_of(first->path), first->file.how);
        return;
    }
    size_t length = (size_t)snprintf(text, size, "records of %u inputs from", dataset->input_count);
    for (unsigned i = 0; i < dataset->input_count && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s %s", i > 0 ? "," : "",
                                   file_name_of(dataset->inputs[i].path));
}

static int fill(struct npy_dataset *dataset, const struct dataset_source *source, struct error *error)
{
    const struct column *first = &dataset->inputs[0], *labels = &dataset->labels;
    if (open_inputs(dataset, source, error) < 0 || compare_with_training(dataset, source, error) < 0)
        return -1;
    dataset->base.count = first->array.shape[0];
    if (dataset->input_count == 1)
        dataset->base.facts.input_scale = scale_of(&first->array);
    if (source->is_new) {
        describe(dataset);
        return 0;
    }
    if (open_column(source, source->files->labels, &dataset->labels, error) < 0 ||
        check_labels(&labels->array, source->format, error) < 0)
        return -1;
    for (unsigned i = 0; i < dataset->input_count; i++)
        dataset->base.memory += file_bytes_in_memory(&dataset->inputs[i].file);
    dataset->base.memory += file_bytes_in_memory(&labels->file);
    for (unsigned i = 1; i <= dataset->input_count; i++) {
        const struct column *other = i < dataset->input_count ? &dataset->inputs[i] : labels;
        if (other->array.shape[0] != first->array.shape[0])
            return error_set(error, ERROR_INVALID,
                             "%s: %s has %lld examples, but %s has %lld; an example is one of each",
                             dataset_section(source), first->path, (long long)first->array.shape[0], other->path,
                             (long long)other->array.shape[0]);
    }
    describe(dataset);
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

/* ---------------------------------------------------------------- reading */

static int read_floats(const struct column *column, int64_t index, int64_t count, float *values, struct error *error)
{
    const uint8_t *from = column->array.data + index * count;
    if (has_pixels(&column->array)) {
        for (int64_t i = 0; i < count; i++)
            values[i] = pixel_value(from[i]);
        return 0;
    }
    npy_floats(&column->array, index * count, count, values);
    if (finite_values_check(values, 0, count, error) == 0)
        return 0;
    return error_wrap(error, "%s: example %lld", column->path, (long long)index);
}

/* The values of a program's int32 input, which lie within its vocabulary. */
static int read_integers(const struct column *column, const struct example_input *input, int64_t index, int32_t *values,
                         struct error *error)
{
    int64_t least = input->vocabulary > 0 ? 0 : INT32_MIN;
    int64_t most = input->vocabulary > 0 ? input->vocabulary - 1 : INT32_MAX;
    for (int64_t i = 0; i < input->elements; i++) {
        int64_t value = npy_integer_at(&column->array, index * input->elements + i);
        if (value < least || value > most)
            return error_set(error, ERROR_INVALID,
                             "%s: example %lld: value %lld is %lld, but the input %s of the model takes %lld to %lld",
                             column->path, (long long)index, (long long)i, (long long)value, input->name,
                             (long long)least, (long long)most);
        values[i] = (int32_t)value;
    }
    return 0;
}

static int read_inputs(const struct npy_dataset *dataset, int64_t index, void *input, struct error *error)
{
    const struct example_format *format = &dataset->base.format;
    if (format->input_count == 0)
        return read_floats(&dataset->inputs[0], index, format->input_elements, input, error);
    int32_t *at = input;
    for (unsigned i = 0; i < format->input_count; i++) {
        const struct example_input *of = &format->inputs[i];
        int result = of->type == ELEMENT_INT32
                         ? read_integers(&dataset->inputs[i], of, index, at, error)
                         : read_floats(&dataset->inputs[i], index, of->elements, (float *)(void *)at, error);
        if (result < 0)
            return -1;
        at += of->elements;
    }
    return 0;
}

static int read_label(const struct npy_dataset *dataset, int64_t index, void *target, struct error *error)
{
    const struct example_format *format = &dataset->base.format;
    int64_t count = format->target_elements;
    if (!dataset->labels.path) {
        memset(target, 0, example_target_bytes(format));
        return 0;
    }
    if (format->target_type == ELEMENT_FLOAT32)
        return read_floats(&dataset->labels, index, count, target, error);
    for (int64_t i = 0; i < count; i++) {
        int64_t label = npy_integer_at(&dataset->labels.array, index * count + i);
        if (pixels_check_label(format, label, index, error) < 0)
            return error_wrap(error, "%s", dataset->labels.path);
        ((int32_t *)target)[i] = (int32_t)label;
    }
    return 0;
}

static int npy_read(const struct dataset *base, int64_t index, void *input, void *target, struct error *error)
{
    const struct npy_dataset *dataset = (const struct npy_dataset *)base;
    return read_inputs(dataset, index, input, error) < 0 ? -1 : read_label(dataset, index, target, error);
}

static int npy_check(const struct dataset *base, int64_t index, uint64_t round, struct error *error)
{
    const struct npy_dataset *dataset = (const struct npy_dataset *)base;
    (void)index;
    for (unsigned i = 0; i < dataset->input_count; i++)
        if (file_bytes_check(&dataset->inputs[i].file, round, error) < 0)
            return -1;
    return file_bytes_check(&dataset->labels.file, round, error);
}

const struct dataset_kind dataset_npy = {.open = npy_open, .free = npy_free, .read = npy_read, .check = npy_check};
