/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
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
        return error_set(error, ERROR_TOO_LARGE, "more than %lld records", (long long)RECORDS_MAX);
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

static int fill(struct tfrecord_dataset *dataset, const struct dataset_source *source, struct error *error)
{
    const struct data_spec *spec = source->spec;
    dataset->image = memory_copy_string(spec->image_feature ? spec->image_feature : "image");
    dataset->label = memory_copy_string(spec->label_feature ? spec->label_feature : "label");
    if (pixels_check_wanted(source->format, "TFRecord", error) < 0 ||
        file_set_open(source, source->files->files, &dataset->set, error) < 0 ||
        find_records(dataset, source, error) < 0)
        return -1;
    char files[160];
    file_set_describe(&dataset->set, source->files->files, files, sizeof files);
    dataset->base.count = dataset->count;
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

static int read_example(const struct tfrecord_dataset *dataset, const struct tfrecord *record, void *input,
                        void *target, struct error *error)
{
    const struct example_format *format = &dataset->base.format;
    struct tf_feature image, label;
    int64_t class;
    if (tfrecord_check(record, error) < 0 || tf_example_find(record, dataset->image, &image, error) < 0 ||
        tf_example_find(record, dataset->label, &label, error) < 0)
        return -1;
    if (read_pixels(&image, input, format->input_elements, error) < 0)
        return error_wrap(error, "feature %s", dataset->image);
    if (tf_feature_integers(&label, &class, 1, error) < 0)
        return error_wrap(error, "feature %s", dataset->label);
    *(int32_t *)target = (int32_t) class;
    if (class < 0 || class >= format->classes)
        return error_set(error, ERROR_INVALID, "feature %s is %lld, but the model has %lld classes (0..%lld)",
                         dataset->label, (long long)class, (long long)format->classes, (long long)format->classes - 1);
    return 0;
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
