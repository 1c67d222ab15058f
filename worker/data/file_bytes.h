/* SPDX-License-Identifier: Apache-2.0
 *
 * All bytes of a file, plain or gzip, at one address: a plain file is mapped; a
 * gzip file (by its magic number) is inflated once, into memory up to
 * FILE_BYTES_IN_MEMORY, beyond that into an unlinked temporary file that is
 * mapped. Neither need fit in memory.
 */
#ifndef COXSWAIN_DATA_FILE_BYTES_H
#define COXSWAIN_DATA_FILE_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/data/mapped_file.h"

#define FILE_BYTES_IN_MEMORY (64 << 20)
/* Inflated sizes above this are refused (ERROR_TOO_LARGE): a few bytes of gzip can ask for a whole disk. */
#define FILE_BYTES_MAX ((int64_t)64 << 30)

struct file_bytes {
    const uint8_t *bytes;
    size_t length;
    struct mapped_file *file; /* NULL: the bytes are from malloc */
    const char *how;          /* "mapped", "inflated into memory", "inflated into a temporary file" */
};

int file_bytes_open(const char *path, struct file_bytes *ret_file, struct error *error);
void file_bytes_release(struct file_bytes *file);
/* Whether what was read since was there: mapped_file_check. */
int file_bytes_check(const struct file_bytes *file, uint64_t round, struct error *error);

#endif
