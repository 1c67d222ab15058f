/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"
#include "worker/data/file_set.h"
#include "worker/data/finite_values.h"
#include "worker/data/pixels.h"
#include "worker/data/tfrecord.h"

#define RECORDS_MAX ((int64_t)1 << 31)

struct tfrecord_dataset {
    struct dataset base;
    struct file_set set;
    uint64_t *offsets; /* of every record within its file */
    int64_t count, capacity;
    char *image, *label; /* names of features */
};

static void tfrecord_free(struct dataset *base)
{
    struct tfrecord_dataset *dataset = (struct tfrecord_dataset *)base;
    file_set_release(&dataset->set);
    free(dataset->offsets);
    free(dataset->image);
    free(dataset->label);
}

static int add_offset(struct tfrecord_dataset *dataset, size_t offset, struct error *error)
{
    if (dataset->count == RECORDS_MAX)
        return error_set(error, ERROR_TOO_LARGE, "the data set has more than %lld records, the most that are supported",
                         (long long)RECORDS_MAX);
    if (dataset->count == dataset->capacity) {
        int64_t capacity = dataset->capacity > 0 ? 2 * dataset->capacity : 1024;
        uint64_t *offsets = realloc(dataset->offsets, (size_t)capacity * sizeof *offsets);
        if (!offsets)
            return error_set(error, ERROR_NO_SPACE, "no memory for an index of %lld records", (long long)capacity);
        dataset->offsets = offsets;
        dataset->capacity = capacity;
    }
    dataset->offsets[dataset->count++] = offset;
    return 0;
}

static int find_records(struct tfrecord_dataset *dataset, const struct dataset_source *source, struct error *error)
{
    for (unsigned i = 0; i < dataset->set.count; i++) {
        struct file_set_entry *entry = &dataset->set.entries[i];
        struct tfrecord record = {0};
        for (size_t at = 0; at < entry->file.length; at = record.next)
            if (tfrecord_at(entry->file.bytes, entry->file.length, at, &record, error) < 0 ||
                add_offset(dataset, at, error) < 0)
                return error_wrap(error, "%s", entry->path);
        entry->end = dataset->count;
    }
    if (dataset->count == 0)
        return error_set(error, ERROR_INVALID, "%s.files hold no record", dataset_section(source));
    return 0;
}

/* A program takes whatever the features hold; a model of layers, images. */
static int check_format(const struct dataset_source *source, struct error *error)
{
    if (source->format->input_count == 0)
        return pixels_check_wanted(source->format, "TFRecord", error);
    if (source->format->input_count > 1 && source->spec->image_feature)
        return error_set(
            error, ERROR_INVALID,
            "data.imageFeature is for models with one input, but this one takes %u, each from the feature with "
            "its name, such as %s; leave data.imageFeature out",
            source->format->input_count, source->format->inputs[0].name);
    return 0;
}

static int fill(struct tfrecord_dataset *dataset, const struct dataset_source *source, struct error *error)
{
    const struct data_spec *spec = source->spec;
    dataset->image = memory_copy_string(spec->image_feature ? spec->image_feature : "image");
    dataset->label = memory_copy_string(spec->label_feature ? spec->label_feature : "label");
    if (check_format(source, error) < 0 || file_set_open(source, source->files->files, &dataset->set, error) < 0 ||
        find_records(dataset, source, error) < 0)
        return -1;
    char files[160];
    file_set_describe(&dataset->set, source->files->files, files, sizeof files);
    dataset->base.count = dataset->count;
    unsigned inputs = source->format->input_count;
    if (inputs > 1)
        snprintf(dataset->base.description, sizeof dataset->base.description, "records of %u inputs from %s", inputs,
                 files);
    else
        snprintf(dataset->base.description, sizeof dataset->base.description, "examples of %lld values from %s",
                 (long long)source->format->input_elements, files);
    return 0;
}

static int tfrecord_open(const struct dataset_source *source, struct dataset **ret_dataset, struct error *error)
{
    struct tfrecord_dataset *dataset = memory_allocate(1, sizeof *dataset);
    dataset->base.kind = &dataset_tfrecord;
    dataset->base.format = *source->format;
    if (fill(dataset, source, error) < 0) {
        dataset_free(&dataset->base);
        return -1;
    }
    *ret_dataset = &dataset->base;
    return 0;
}

static bool is_compressed(const uint8_t *bytes, size_t length)
{
    return length > 3 && (memcmp(bytes, "\x89PNG", 4) == 0 || memcmp(bytes, "\xff\xd8\xff", 3) == 0);
}

static int read_pixels(const struct tf_feature *feature, float *values, int64_t count, struct error *error)
{
    const uint8_t *bytes;
    size_t length;
    if (feature->kind == TF_FLOATS)
        return tf_feature_floats(feature, values, count, error) < 0 ? -1 : finite_values_check(values, 0, count, error);
    if (tf_feature_bytes(feature, &bytes, &length, error) < 0)
        return -1;
    if (length == (size_t)count) {
        for (int64_t i = 0; i < count; i++)
            values[i] = pixel_value(bytes[i]);
        return 0;
    }
    if (length == (size_t)count * sizeof *values) {
        memcpy(values, bytes, length);
        return finite_values_check(values, 0, count, error);
    }
    return error_set(error, ERROR_INVALID, "it has %zu bytes, the model's input %lld values%s", length,
                     (long long)count,
                     is_compressed(bytes, length) ? "; it is a compressed picture: store its pixels as raw bytes" : "");
}

/* Reads `count` integers, each from `least` to `most`. */
static int read_integers(const struct tf_feature *feature, int32_t *values, int64_t count, int64_t least, int64_t most,
                         struct error *error)
{
    SCOPED_FREE int64_t *integers = memory_allocate((size_t)count, sizeof *integers);
    if (tf_feature_integers(feature, integers, count, error) < 0)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        if (integers[i] < least || integers[i] > most)
            return error_set(error, ERROR_INVALID, "value %lld is %lld, but the model takes %lld to %lld", (long long)i,
                             (long long)integers[i], (long long)least, (long long)most);
        values[i] = (int32_t)integers[i];
    }
    return 0;
}

static int read_input(const struct tfrecord *record, const char *name, const struct example_input *input, void *values,
                      struct error *error)
{
    struct tf_feature feature;
    bool bounded = input->vocabulary > 0;
    if (tf_example_find(record, name, &feature, error) < 0)
        return -1;
    int result = input->type == ELEMENT_FLOAT32
                     ? read_pixels(&feature, values, input->elements, error)
                     : read_integers(&feature, values, input->elements, bounded ? 0 : INT32_MIN,
                                     bounded ? input->vocabulary - 1 : INT32_MAX, error);
    return result < 0 ? error_wrap(error, "feature %s", name) : 0;
}

/* Several inputs are the features with their names; an only one is the feature that the job names. */
static int read_inputs(const struct tfrecord_dataset *dataset, const struct tfrecord *record, void *input,
                       struct error *error)
{
    const struct example_format *format = &dataset->base.format;
    const struct example_input pixels = {.type = ELEMENT_FLOAT32, .elements = format->input_elements};
    if (format->input_count < 2)
        return read_input(record, dataset->image, format->input_count == 1 ? &format->inputs[0] : &pixels, input,
                          error);
    char *at = input;
    for (unsigned i = 0; i < format->input_count; i++) {
        const struct example_input *of = &format->inputs[i];
        if (read_input(record, of->name, of, at, error) < 0)
            return -1;
        at += (size_t)of->elements * sizeof(float);
    }
    return 0;
}

static int read_classes(const struct tf_feature *feature, const struct example_format *format, int32_t *targets,
                        struct error *error)
{
    if (read_integers(feature, targets, format->target_elements, INT32_MIN, INT32_MAX, error) < 0)
        return -1;
    for (int64_t i = 0; i < format->target_elements; i++)
        if (!example_takes_target(format, targets[i]))
            return error_set(error, ERROR_INVALID, "value %lld is %d, but the model's classes are 0 to %lld",
                             (long long)i, targets[i], (long long)format->classes - 1);
    return 0;
}

static int read_target(const struct tfrecord_dataset *dataset, const struct tfrecord *record, void *target,
                       struct error *error)
{
    const struct example_format *format = &dataset->base.format;
    struct tf_feature label;
    if (tf_example_find(record, dataset->label, &label, error) < 0)
        return -1;
    int result = format->target_type == ELEMENT_FLOAT32 ? read_pixels(&label, target, format->target_elements, error)
                                                        : read_classes(&label, format, target, error);
    return result < 0 ? error_wrap(error, "feature %s", dataset->label) : 0;
}

static int read_example(const struct tfrecord_dataset *dataset, const struct tfrecord *record, void *input,
                        void *target, struct error *error)
{
    return tfrecord_check(record, error) < 0 || read_inputs(dataset, record, input, error) < 0 ||
                   read_target(dataset, record, target, error) < 0
               ? -1
               : 0;
}

static int tfrecord_read(const struct dataset *base, int64_t index, void *input, void *target, struct error *error)
{
    const struct tfrecord_dataset *dataset = (const struct tfrecord_dataset *)base;
    int64_t within;
    struct tfrecord record;
    const struct file_set_entry *entry = file_set_find(&dataset->set, index, &within);
    if (tfrecord_at(entry->file.bytes, entry->file.length, dataset->offsets[index], &record, error) < 0 ||
        read_example(dataset, &record, input, target, error) < 0)
        return error_wrap(error, "%s: record %lld", entry->path, (long long)within);
    return 0;
}

static int tfrecord_check_files(const struct dataset *base, int64_t index, uint64_t round, struct error *error)
{
    return file_set_check(&((const struct tfrecord_dataset *)base)->set, index, round, error);
}

const struct dataset_kind dataset_tfrecord = {
    .open = tfrecord_open, .free = tfrecord_free, .read = tfrecord_read, .check = tfrecord_check_files};
