/* SPDX-License-Identifier: Apache-2.0
 *
 * What a file format implements behind dataset.h; one file each.
 */
#ifndef COXSWAIN_DATA_DATASET_FORMAT_H
#define COXSWAIN_DATA_DATASET_FORMAT_H

#include "worker/data/augmentation.h"
#include "worker/data/dataset.h"

struct dataset {
    const struct dataset_kind *kind;
    struct example_format format;
    int64_t count;                    /* of this split */
    int64_t first;                    /* where the split begins among the source's examples */
    struct augmentation augmentation; /* of what is learnt from; else nothing */
    char description[256];
};

/* What an opening gets. */
struct dataset_source {
    const struct data_spec *spec;
    const struct data_files *files;
    const struct storage_map *storage;
    const struct example_format *format; /* what the model wants */
};

struct dataset_kind {
    /* `count` is set to all examples of the source; dataset.c cuts the split. */
    int (*open)(const struct dataset_source *source, struct dataset **ret_dataset, struct error *error);
    void (*free)(struct dataset *dataset);
    /* One example of the source, by its number there. */
    int (*read)(const struct dataset *dataset, int64_t index, void *input, void *target, struct error *error);
    /* Whether the files of an example that was read are still whole (file_bytes_check); NULL: there are none. */
    int (*check)(const struct dataset *dataset, int64_t index, uint64_t round, struct error *error);
};

extern const struct dataset_kind dataset_idx, dataset_bytes, dataset_synthetic, dataset_cifar10, dataset_npy,
    dataset_tokens, dataset_tfrecord;

#endif
