/* SPDX-License-Identifier: Apache-2.0
 *
 * Gives the data formats (dataset_FORMAT.c) all bytes of a file, plain or gzip, at one address. A plain file
 * is mapped. A gzip file (recognised by its magic number) is inflated once: into memory up to
 * FILE_BYTES_IN_MEMORY, else into an unlinked temporary file that is mapped. Files larger than memory can be
 * read. A file may become shorter while it is mapped; call file_bytes_check after reading.
 */
#ifndef COXSWAIN_COMMON_DATA_FILE_BYTES_H
#define COXSWAIN_COMMON_DATA_FILE_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "common/data/mapped_file.h"
#include "common/error.h"

#define FILE_BYTES_IN_MEMORY (64 << 20)
/* Inflated sizes above this are refused (ERROR_TOO_LARGE), since a few bytes of gzip can fill a
 * disk. */
#define FILE_BYTES_MAX ((int64_t)64 << 30)

struct file_bytes {
    const uint8_t *bytes; /* NULL: the file is empty */
    size_t length;
    struct mapped_file *file; /* NULL: the bytes are in memory from malloc */
    const char *how;          /* "mapped", "inflated into memory", "inflated into a temporary file" */
};

int file_bytes_open(const char *path, struct file_bytes *ret_file, struct error *error);
void file_bytes_release(struct file_bytes *file);
/* Returns how many bytes it takes in memory: 0 if it is mapped. */
int64_t file_bytes_in_memory(const struct file_bytes *file);
/* Fails with ERROR_NOT_FOUND if a part of the file was missing when it was read; `round` is explained at mapped_file_check. */
int file_bytes_check(const struct file_bytes *file, uint64_t round, struct error *error);

#endif
