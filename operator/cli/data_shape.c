/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/data_shape.h"

#include <string.h>

#include "common/data/csv.h"
#include "common/data/file_bytes.h"
#include "common/data/idx.h"
#include "common/data/npy.h"
#include "common/job/enum_words.h"
#include "common/job/job_document.h"
#include "common/memory.h"

#define CLASSES_MAX 1048576
#define INTEGER_CLASSES_MAX 100 /* of CSV: more different integers are amounts */

static void file_scope(struct file_bytes *file)
{
    file_bytes_release(file);
}

static int open_file(const char *folder, const char *name, struct file_bytes *ret_file, struct error *error)
{
    SCOPED_FREE char *path = memory_format("%s/%s", folder, name);
    return file_bytes_open(path, ret_file, error);
}

/* The presets take two classes at least. */
static int set_classes(struct data_shape *shape, const char *name, int64_t most, struct error *error)
{
    if (most >= CLASSES_MAX)
        return error_set(error, ERROR_INVALID, "%s: label %lld is above %d; classes are counted from 0", name,
                         (long long)most, CLASSES_MAX - 1);
    shape->classes = most < 1 ? 2 : most + 1;
    return 0;
}

static int check_counts(const char *images, int64_t image_count, const char *labels, int64_t label_count,
                        struct error *error)
{
    if (image_count == 0)
        return error_set(error, ERROR_INVALID, "%s holds no examples", images);
    if (image_count != label_count)
        return error_set(error, ERROR_INVALID, "%s holds %lld examples, but %s %lld labels", images,
                         (long long)image_count, labels, (long long)label_count);
    return 0;
}

/* Dimensions beyond those that a model's input may have are joined. */
static void add_side(struct data_shape *shape, int64_t side)
{
    if (shape->rank < DATA_SHAPE_RANK_MAX)
        shape->sides[shape->rank++] = side;
    else
        shape->sides[shape->rank - 1] *= side;
}

/* ---------------------------------------------------------------- IDX */

static int parse_idx(const char *folder, const char *name, struct file_bytes *file, struct idx *ret_idx,
                     struct error *error)
{
    if (open_file(folder, name, file, error) < 0)
        return -1;
    return idx_parse(file->bytes, file->length, ret_idx, error) < 0 ? error_wrap(error, "%s", name) : 0;
}

static int read_idx(const char *folder, const char *images_name, const char *labels_name, struct data_shape *shape,
                    struct error *error)
{
    SCOPED(file_scope) struct file_bytes images_file = {.bytes = NULL};
    SCOPED(file_scope) struct file_bytes labels_file = {.bytes = NULL};
    struct idx images, labels;
    int64_t most = 0;
    if (parse_idx(folder, images_name, &images_file, &images, error) < 0 ||
        parse_idx(folder, labels_name, &labels_file, &labels, error) < 0 ||
        check_counts(images_name, images.dims[0], labels_name, (int64_t)labels.element_count, error) < 0)
        return -1;
    shape->examples = images.dims[0];
    shape->pixels = true;
    for (unsigned i = 1; i < images.rank; i++)
        add_side(shape, images.dims[i]);
    for (size_t i = 0; i < labels.element_count; i++)
        most = labels.elements[i] > most ? labels.elements[i] : most;
    return set_classes(shape, labels_name, most, error);
}

/* ---------------------------------------------------------------- NPY */

static int parse_npy(const char *folder, const char *name, struct file_bytes *file, struct npy *ret_npy,
                     struct error *error)
{
    if (open_file(folder, name, file, error) < 0)
        return -1;
    if (npy_parse(file->bytes, file->length, ret_npy, error) < 0)
        return error_wrap(error, "%s", name);
    if (ret_npy->rank == 0)
        return error_set(error, ERROR_INVALID, "%s is one number; the first dimension counts the examples", name);
    if (!npy_has_numbers(ret_npy))
        return error_set(error, ERROR_INVALID, "%s has values of type f%u; save them as float32", name,
                         ret_npy->item_bytes);
    return 0;
}

static int read_npy_labels(const struct npy *labels, const char *name, struct data_shape *shape, struct error *error)
{
    int64_t of_example = labels->elements / labels->shape[0], most = 0;
    if (labels->kind == 'f') {
        shape->numbers = of_example;
        return 0;
    }
    if (of_example != 1)
        return error_set(error, ERROR_INVALID,
                         "%s has %lld integers for each example; save one that is its class, or floats to predict",
                         name, (long long)of_example);
    for (int64_t i = 0; i < labels->elements; i++) {
        int64_t label = npy_integer_at(labels, i);
        if (label < 0)
            return error_set(error, ERROR_INVALID, "%s: label %lld is %lld; classes are counted from 0", name,
                             (long long)i, (long long)label);
        most = label > most ? label : most;
    }
    return set_classes(shape, name, most, error);
}

static int read_npy(const char *folder, const char *images_name, const char *labels_name, struct data_shape *shape,
                    struct error *error)
{
    SCOPED(file_scope) struct file_bytes images_file = {.bytes = NULL};
    SCOPED(file_scope) struct file_bytes labels_file = {.bytes = NULL};
    struct npy images, labels;
    if (parse_npy(folder, images_name, &images_file, &images, error) < 0 ||
        parse_npy(folder, labels_name, &labels_file, &labels, error) < 0 ||
        check_counts(images_name, images.shape[0], labels_name, labels.shape[0], error) < 0)
        return -1;
    shape->examples = images.shape[0];
    shape->pixels = images.kind == 'u' && images.item_bytes == 1;
    for (unsigned i = 1; i < images.rank; i++)
        add_side(shape, images.shape[i]);
    if (images.rank == 1)
        add_side(shape, 1);
    return read_npy_labels(&labels, labels_name, shape, error);
}

/* ---------------------------------------------------------------- CSV */

/* What the labels are: words are classes, and so are integers unless there are very many; fractions are predicted. */
static int read_csv_labels(struct csv *csv, const char *name, struct data_shape *shape, struct error *error)
{
    struct csv_labels labels = {.list = NULL};
    unsigned columns = 0;
    int result, added = 0;
    bool numbers = true;
    double number;
    for (bool first = true; (result = csv_next(csv, error)) > 0; first = false) {
        const struct csv_field *label = &csv->fields[csv->count - 1];
        columns = columns > 0 ? columns : csv->count;
        if (first && csv_is_header(csv))
            continue;
        shape->examples++;
        numbers &= csv_number(label, &number);
        if (added == 0)
            added = csv_labels_add(&labels, label, error);
    }
    if (result == 0 && added < 0 && !numbers)
        result = error_wrap(error, "%s: the last column", name);
    shape->numbers = numbers && (added < 0 || !labels.integers || labels.count > INTEGER_CLASSES_MAX);
    shape->classes = shape->numbers ? 0 : labels.count < 2 ? 2 : labels.count;
    if (columns > 0)
        add_side(shape, (int64_t)columns - 1);
    csv_labels_release(&labels);
    return result;
}

static int read_csv(const char *folder, const char *name, struct data_shape *shape, struct error *error)
{
    SCOPED(file_scope) struct file_bytes file = {.bytes = NULL};
    struct csv csv;
    if (open_file(folder, name, &file, error) < 0)
        return -1;
    csv_init(&csv, file.bytes, file.length);
    int result = read_csv_labels(&csv, name, shape, error);
    csv_release(&csv);
    if (result < 0)
        return error_wrap(error, "%s", name);
    if (shape->examples == 0 || shape->sides[0] == 0)
        return error_set(error, ERROR_INVALID, "%s: a table has a row for each example, with values and a label", name);
    return 0;
}

/* ---------------------------------------------------------------- all of them */

static int read_text(const char *folder, const char *name, struct data_shape *shape, struct error *error)
{
    SCOPED(file_scope) struct file_bytes file = {.bytes = NULL};
    if (open_file(folder, name, &file, error) < 0)
        return -1;
    shape->examples = file.length > 0 ? ((int64_t)file.length - 1) / DATA_SHAPE_CONTEXT : 0;
    if (shape->examples < 2)
        return error_set(error, ERROR_INVALID, "%s is too short: the model reads %d bytes at a time", name,
                         DATA_SHAPE_CONTEXT);
    return 0;
}

static int read_files(const char *folder, const char *format, const char *files, const char *labels,
                      struct data_shape *ret_shape, struct error *error)
{
    struct data_shape shape = {.examples = 0};
    int result = 0;
    switch (words_find(data_format_words, format)) {
    case DATA_FORMAT_IDX:
        result = read_idx(folder, files, labels, &shape, error);
        break;
    case DATA_FORMAT_NPY:
        result = read_npy(folder, files, labels, &shape, error);
        break;
    case DATA_FORMAT_CSV:
        result = read_csv(folder, files, &shape, error);
        break;
    case DATA_FORMAT_BYTES:
        result = read_text(folder, files, &shape, error);
        break;
    default:
        break;
    }
    if (result == 0)
        *ret_shape = shape;
    return result;
}

int data_shape_read(const char *folder, const struct data_files_found *found, struct data_shape *ret_shape,
                    struct error *error)
{
    struct data_shape shape, tested = {.examples = 0};
    if (read_files(folder, found->format, found->files, found->labels, &shape, error) < 0 ||
        (found->test_files &&
         read_files(folder, found->format, found->test_files, found->test_labels, &tested, error) < 0))
        return -1;
    shape.tested = tested.examples;
    shape.classes = tested.classes > shape.classes ? tested.classes : shape.classes;
    *ret_shape = shape;
    return 0;
}

void data_shape_describe(const struct data_shape *shape, struct buffer *out)
{
    if (shape->rank == 0) {
        buffer_format(out, "%lld windows of %d bytes", (long long)shape->examples, DATA_SHAPE_CONTEXT);
        return;
    }
    buffer_format(out, "%lld examples of ", (long long)shape->examples);
    for (unsigned i = 0; i < shape->rank; i++)
        buffer_format(out, i > 0 ? "x%lld" : "%lld", (long long)shape->sides[i]);
    buffer_append_string(out,
                         shape->pixels                              ? " pixels"
                         : shape->rank == 1 && shape->sides[0] == 1 ? " value"
                                                                    : " values",
                         NULL);
    if (shape->classes > 0)
        buffer_format(out, ", %lld classes", (long long)shape->classes);
    else
        buffer_format(out, ", %lld number%s to predict", (long long)shape->numbers, shape->numbers == 1 ? "" : "s");
}
