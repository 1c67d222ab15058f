/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/data_folder.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/job/enum_words.h"
#include "common/memory.h"

#define LIST_MAX 512

/* Earlier rows take precedence. For files that are used together, the job gets the pattern. The labels' file name is that of the images
 * with one part changed. */
static const struct kind {
    enum data_format format;
    const char *pattern;
    bool together;
    const char *images, *labels; /* the part that tells them apart; NULL: there are no labels apart */
    const char *usual;
} kinds[] = {
    {DATA_FORMAT_IDX, "*train*images*idx3*", false, "images-idx3", "labels-idx1", "train-images-idx3-ubyte.gz"},
    {DATA_FORMAT_IDX, "*images*idx3*", false, "images-idx3", "labels-idx1", NULL},
    {DATA_FORMAT_CIFAR10, "data_batch_*.bin", true, NULL, NULL, "data_batch_*.bin"},
    {DATA_FORMAT_TFRECORD, "*train*.tfrecord*", true, NULL, NULL, "*train*.tfrecord*"},
    {DATA_FORMAT_TFRECORD, "*.tfrecord*", true, NULL, NULL, NULL},
    {DATA_FORMAT_NPY, "*train*images*.npy", false, "images", "labels", "train-images.npy"},
    {DATA_FORMAT_NPY, "*images*.npy", false, "images", "labels", NULL},
    {DATA_FORMAT_NPY, "[xX]_train*.npy", false, "x_", "y_", NULL},
    {DATA_FORMAT_NPY, "[xX]*.npy", false, "x", "y", NULL},
    {DATA_FORMAT_NPY, "data*.npy", false, "data", "labels", NULL},
    {DATA_FORMAT_CSV, "*train*.csv*", false, NULL, NULL, "train.csv"},
    {DATA_FORMAT_CSV, "*.csv*", false, NULL, NULL, NULL},
    {DATA_FORMAT_TOKENS, "*train*.bin", true, NULL, NULL, "*train*.bin"},
    {DATA_FORMAT_BYTES, "*.txt", false, NULL, NULL, "corpus.txt"},
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)

static bool is_of(const struct kind *kind, const char *format)
{
    return !format || strcmp(data_format_words[kind->format], format) == 0;
}

/* Returns the name with `part`, of whatever case, replaced; NULL: it has no such part. */
static char *with_part(const char *name, const char *part, const char *other)
{
    const char *at = part ? strcasestr(name, part) : NULL;
    return at ? memory_format("%.*s%s%s", (int)(at - name), name, other, at + strlen(part)) : NULL;
}

static char *labels_of(const struct kind *kind, const char *images)
{
    return with_part(images, kind->images, kind->labels);
}

static bool lists(struct dirent **entries, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(entries[i]->d_name, name) == 0)
            return true;
    return false;
}

/* Finds the files to test with, if there are both. */
static void find_test(const struct kind *kind, struct dirent **entries, int count, const char *name,
                      struct data_files_found *found)
{
    static const char *const words[] = {"test", "t10k", "val", "valid", "validation"};
    for (size_t i = 0; i < sizeof words / sizeof *words && kind->images; i++) {
        SCOPED_FREE char *images = with_part(name, "train", words[i]);
        SCOPED_FREE char *labels = images ? labels_of(kind, images) : NULL;
        if (!labels || !lists(entries, count, images) || !lists(entries, count, labels))
            continue;
        found->test_files = memory_copy_string(images);
        found->test_labels = memory_copy_string(labels);
        return;
    }
}

/* Finds the first images, in the order of names, that have labels. */
static bool find(const struct kind *kind, struct dirent **entries, int count, struct data_files_found *ret_found)
{
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        SCOPED_FREE char *labels = labels_of(kind, name);
        if (fnmatch(kind->pattern, name, FNM_PERIOD) != 0 ||
            (kind->images && !(labels && lists(entries, count, labels))))
            continue;
        *ret_found = (struct data_files_found){.format = data_format_words[kind->format],
                                               .files = memory_copy_string(kind->together ? kind->pattern : name),
                                               .labels = memory_copy_string(labels)};
        find_test(kind, entries, count, name, ret_found);
        return true;
    }
    return false;
}

static int refuse(const char *folder, const char *format, struct error *error)
{
    SCOPED_BUFFER patterns;
    buffer_init(&patterns, LIST_MAX);
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (is_of(&kinds[i], format))
            buffer_format(&patterns, "%s%s", patterns.length > 0 ? ", " : "", kinds[i].pattern);
    if (patterns.length == 0)
        return error_set(error, ERROR_NOT_FOUND, "%s: format %s has no files to look for", folder, format);
    return error_set(
        error, ERROR_NOT_FOUND,
        "%s: no file there has a name of training data (%s); leave out --data, give --format, and write the "
        "files' names into the manifest that is printed",
        folder, buffer_text(&patterns));
}

int data_folder_look(const char *folder, const char *format, struct data_files_found *ret_found, struct error *error)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0)
        return error_set_errno(error, "look into %s", folder);
    bool found = false;
    for (size_t i = 0; i < KIND_COUNT && !found; i++)
        found = is_of(&kinds[i], format) && find(&kinds[i], entries, count, ret_found);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return found ? 0 : refuse(folder, format, error);
}

bool data_files_usual(const char *format, struct data_files_found *ret_found)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (!is_of(&kinds[i], format) || !kinds[i].usual)
            continue;
        *ret_found = (struct data_files_found){.format = data_format_words[kinds[i].format],
                                               .files = memory_copy_string(kinds[i].usual),
                                               .labels = labels_of(&kinds[i], kinds[i].usual)};
        return true;
    }
    return false;
}

void data_files_release(struct data_files_found *found)
{
    free(found->files);
    free(found->labels);
    free(found->test_files);
    free(found->test_labels);
    *found = (struct data_files_found){.format = NULL};
}
