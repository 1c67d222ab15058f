/* SPDX-License-Identifier: Apache-2.0
 *
 * Long files, written from front to back at the disk's pace: it works from the
 * first bytes on, and what goes through the cache is never far ahead of it, while a
 * second thread takes the digest.
 *
 * DISK_FILE_PAST_CACHE spares the copy into the page cache where the file system
 * is a local disk's (ext4, XFS, Btrfs, F2FS) and the bytes lie at its blocks in memory and in the file alike;
 * elsewhere it is as DISK_FILE_CACHED. What was written so is read back from the disk, not from memory.
 */
#ifndef COXSWAIN_CHECKPOINT_DISK_FILE_H
#define COXSWAIN_CHECKPOINT_DISK_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Memory and places in a file that are multiples of it can do without a copy. */
#define DISK_FILE_BLOCK 4096

enum disk_file_way { DISK_FILE_CACHED, DISK_FILE_PAST_CACHE };

struct disk_file_span {
    const void *bytes;
    size_t length;
};

/* Writes a new file of all spans, then syncs and closes it; a file that had the name is removed first. Gives CRC-32C and size. */
int disk_file_write(const char *path, const struct disk_file_span *spans, unsigned count, enum disk_file_way way,
                    uint32_t *ret_crc, int64_t *ret_size, struct error *error);

/* As file_digest, but past the page cache where that goes. */
int disk_file_digest(const char *path, uint32_t *ret_crc, int64_t *ret_size, struct error *error);

/* Reads back, through the page cache, what this process has written and others wait for; ERROR_CORRUPT: it is something else. */
int disk_file_check(const char *path, uint32_t crc, int64_t size, struct error *error);

/* For who waits for another process's file: a number that is another one whenever somewhat more of it (32 MiB) has reached its disk, or
 * was read back by disk_file_check; -1: there is none. */
int64_t disk_file_progress(const char *path);

#endif
