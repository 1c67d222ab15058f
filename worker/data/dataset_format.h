/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines what a data format implements, for dataset.c, which reads all formats through a table of functions
 * (struct dataset_kind). Each format has a file of its own, dataset_FORMAT.c. Training code uses dataset.h,
 * not this header. `read` may be called from several threads at a time.
 */
#ifndef COXSWAIN_DATA_DATASET_FORMAT_H
#define COXSWAIN_DATA_DATASET_FORMAT_H

#include "worker/data/augmentation.h"
#include "worker/data/dataset.h"
#include "worker/data/sampler.h"

struct dataset {
    const struct dataset_kind *kind;
    struct example_format format;
    int64_t count;                    /* of this split */
    int64_t first;                    /* first example of the split, in the source */
    struct sampler order;             /* order.count above 0: the source is shuffled with it before it is split */
    int64_t order_first;              /* number of the first example that is shuffled */
    struct augmentation augmentation; /* for training; else inactive */
    struct training_facts facts;
    int readers;            /* threads that may read a batch; 0: one for each processor */
    bool has_labels;        /* CSV: words or integers stand for the classes */
    bool has_targets;       /* new examples: their files have labels too */
    uint32_t labels_digest; /* with has_labels: CRC-32C of the labels, in the order of the classes */
    int64_t memory;         /* see dataset_memory */
    char description[256];
    char notice[256]; /* see dataset_notice */
};

/* The arguments of a format's `open`. */
struct dataset_source {
    const struct data_spec *spec; /* the job's, also with `is_new` */
    const struct data_files *files;
    const struct storage_map *storage;
    const struct example_format *format; /* what the model needs */
    const struct training_facts *known;  /* facts that need not be read from the training files; NULL: none */
    /* NPY, CSV, ImageFolder: the files hold new examples, which may lack labels, and `files` has the caller's path. */
    bool is_new;
};

/* Returns the field that names the source's files, for messages: data.train or data.validation. */
const char *dataset_section(const struct dataset_source *source);
/* Returns where a file of the source lies: below the data's folder in its storage. free() the result. */
int dataset_path(const struct dataset_source *source, const char *path, char **ret_path, struct error *error);

/* Returns how many different tokens a text may have for a model that predicts each from those before: its classes, or the vocabulary of a
 * program's input, where that is smaller. */
static inline int64_t dataset_vocabulary(const struct example_format *format)
{
    int64_t taken = format->input_count > 0 ? format->inputs[0].vocabulary : 0;
    return taken > 0 && taken < format->classes ? taken : format->classes;
}

struct dataset_kind {
    /* Sets `count` to the number of examples in the source; dataset.c then selects the split. */
    int (*open)(const struct dataset_source *source, struct dataset **ret_dataset, struct error *error);
    void (*free)(struct dataset *dataset);
    /* Reads one example; `index` is its number in the source. */
    int (*read)(const struct dataset *dataset, int64_t index, void *input, void *target, struct error *error);
    /* Checks that the file of an example is still whole (file_bytes_check); `round` is mapped_file_round(), the same for
     * all examples of a batch. NULL: the format has no files. */
    int (*check)(const struct dataset *dataset, int64_t index, uint64_t round, struct error *error);
    /* See dataset_example_name; `index` counts the examples of the source. NULL: examples have no files of their own. */
    const char *(*name)(const struct dataset *dataset, int64_t index);
    /* See dataset_keep; NULL: examples are never kept, because reading them is fast. */
    int64_t (*keep)(struct dataset *dataset, int64_t most);
    bool slow; /* reading an example takes so long that several threads should read a batch */
};

extern const struct dataset_kind dataset_idx, dataset_bytes, dataset_synthetic, dataset_cifar10, dataset_npy,
    dataset_tokens, dataset_tfrecord, dataset_csv, dataset_images;

#endif
