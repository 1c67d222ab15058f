/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the files that a path of a job's data names, for data formats that may consist of several files: the
 * file of that name, else all files that match the path, whose last part may contain "*". No other character
 * is special. The files are ordered by name, and their examples are numbered across all of them.
 */
#ifndef COXSWAIN_DATA_FILE_SET_H
#define COXSWAIN_DATA_FILE_SET_H

#include "common/data/file_bytes.h"
#include "worker/data/dataset_format.h"

#define FILE_SET_MAX 4096

struct file_set_entry {
    struct file_bytes file;
    char *path;
    int64_t end; /* examples in this file and those before; set by the format */
};
struct file_set {
    struct file_set_entry *entries;
    unsigned count;
};

/* Opens all files. ERROR_NOT_FOUND if none matches, ERROR_TOO_LARGE above FILE_SET_MAX,
 * ERROR_INVALID if `pattern` is NULL. */
int file_set_open(const struct dataset_source *source, const char *pattern, struct file_set *ret_set,
                  struct error *error);
void file_set_release(struct file_set *set);

/* Returns the number of examples. Every `end` must be set. */
int64_t file_set_count(const struct file_set *set);
/* Returns the file with example `index`, and the example's number within the file. */
const struct file_set_entry *file_set_find(const struct file_set *set, int64_t index, int64_t *ret_within);

/* Checks that the file with example `index` is still whole: see file_bytes_check. */
int file_set_check(const struct file_set *set, int64_t index, uint64_t round, struct error *error);

/* Writes a text such as "data_batch_*.bin (5 files, mapped)". */
void file_set_describe(const struct file_set *set, const char *pattern, char *text, size_t size);

#endif
