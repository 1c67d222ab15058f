/* SPDX-License-Identifier: Apache-2.0
 *
 * The files that a path names: the one of that name, else all whose names fit the
 * * in its last part, in the order of their names. No other character is special. Each holds a number of examples; an example
 * has one number among all.
 */
#ifndef COXSWAIN_DATA_FILE_SET_H
#define COXSWAIN_DATA_FILE_SET_H

#include "worker/data/dataset_format.h"
#include "worker/data/file_bytes.h"

#define FILE_SET_MAX 4096

struct file_set_entry {
    struct file_bytes file;
    char *path;
    int64_t end; /* examples in this file and those before; the format counts them */
};
struct file_set {
    struct file_set_entry *entries;
    unsigned count;
};

/* ERROR_NOT_FOUND when no name fits, ERROR_TOO_LARGE above FILE_SET_MAX. `pattern` NULL is ERROR_INVALID. */
int file_set_open(const struct dataset_source *source, const char *pattern, struct file_set *ret_set,
                  struct error *error);
void file_set_release(struct file_set *set);

/* All examples, once every `end` is set. */
int64_t file_set_count(const struct file_set *set);
/* The file with example `index`, whose number there is *ret_within. */
const struct file_set_entry *file_set_find(const struct file_set *set, int64_t index, int64_t *ret_within);

/* Whether the file with example `index` is still whole: file_bytes_check. */
int file_set_check(const struct file_set *set, int64_t index, uint64_t round, struct error *error);

/* "data_batch_*.bin (5 files, mapped)" */
void file_set_describe(const struct file_set *set, const char *pattern, char *text, size_t size);

#endif
