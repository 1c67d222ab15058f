/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memory.h"
#include "worker/data/cifar10.h"
#include "worker/data/file_set.h"
#include "worker/data/pixels.h"
#include "worker/data/value_order.h"

struct cifar10_dataset {
    struct dataset base;
    struct file_set set;
};

static void cifar10_free(struct dataset *base)
{
    file_set_release(&((struct cifar10_dataset *)base)->set);
}

static int count_records(struct file_set *set, struct error *error)
{
    int64_t total = 0;
    for (unsigned i = 0; i < set->count; i++) {
        int64_t records;
        if (cifar10_count(set->entries[i].file.length, &records, error) < 0)
            return error_wrap(error, "%s", set->entries[i].path);
        total += records;
        set->entries[i].end = total;
    }
    return 0;
}

static int fill(struct cifar10_dataset *dataset, const struct dataset_source *source, struct error *error)
{
    if (pixels_check_wanted(source->format, "CIFAR10", error) < 0)
        return -1;
    if (source->format->input_elements != CIFAR10_VALUES)
        return error_set(error, ERROR_INVALID, "an image has 32x32x3 values, the model's input %lld; change the model",
                         (long long)source->format->input_elements);
    const struct example_shape shape = {3, {32, 32, 3}};
    if (value_order_check("images", &shape, &source->format->input_shape, error) < 0 ||
        file_set_open(source, source->files->files, &dataset->set, error) < 0 ||
        count_records(&dataset->set, error) < 0)
        return -1;
    char files[160];
    file_set_describe(&dataset->set, source->files->files, files, sizeof files);
    dataset->base.count = file_set_count(&dataset->set);
    snprintf(dataset->base.description, sizeof dataset->base.description, "images 32x32x3, %lld classes, from %s",
             (long long)source->format->classes, files);
    return 0;
}

static int cifar10_open(const struct dataset_source *source, struct dataset **ret_dataset, struct error *error)
{
    struct cifar10_dataset *dataset = memory_allocate(1, sizeof *dataset);
    dataset->base.kind = &dataset_cifar10;
    dataset->base.format = *source->format;
    if (fill(dataset, source, error) < 0) {
        dataset_free(&dataset->base);
        return -1;
    }
    *ret_dataset = &dataset->base;
    return 0;
}

static int cifar10_read(const struct dataset *base, int64_t index, void *input, void *target, struct error *error)
{
    int64_t within;
    const struct file_set_entry *entry = file_set_find(&((const struct cifar10_dataset *)base)->set, index, &within);
    const uint8_t *record = entry->file.bytes + within * CIFAR10_RECORD;
    if (pixels_check_label(&base->format, cifar10_label(record), within, error) < 0)
        return error_wrap(error, "%s", entry->path);
    *(int32_t *)target = cifar10_label(record);
    cifar10_pixels(record, input);
    return 0;
}

static int cifar10_check(const struct dataset *base, int64_t index, uint64_t round, struct error *error)
{
    return file_set_check(&((const struct cifar10_dataset *)base)->set, index, round, error);
}

const struct dataset_kind dataset_cifar10 = {
    .open = cifar10_open, .free = cifar10_free, .read = cifar10_read, .check = cifar10_check};
