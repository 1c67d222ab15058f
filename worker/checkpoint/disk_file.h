/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes large files sequentially and reads them back. The disk starts to write with the
 * first bytes, and the page cache is never more than 32 MiB ahead of it. A second thread
 * computes the digest meanwhile.
 *
 * DISK_FILE_PAST_CACHE bypasses the page cache (O_DIRECT) on local file systems (ext4, XFS,
 * Btrfs, F2FS), for bytes that are aligned to blocks both in memory and in the file. Such a
 * file is read back from the disk, not from memory. Elsewhere it is the same as DISK_FILE_CACHED.
 */
#ifndef COXSWAIN_CHECKPOINT_DISK_FILE_H
#define COXSWAIN_CHECKPOINT_DISK_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Bytes whose address and offset in the file are multiples of it are written without a copy. */
#define DISK_FILE_BLOCK 4096

enum disk_file_way { DISK_FILE_CACHED, DISK_FILE_PAST_CACHE };

struct disk_file_span {
    const void *bytes;
    size_t length;
};

/* Writes a new file of all spans, then syncs and closes it; a file that had the name is removed first. Gives CRC-32C and size. */
int disk_file_write(const char *path, const struct disk_file_span *spans, unsigned count, enum disk_file_way way,
                    uint32_t *ret_crc, int64_t *ret_size, struct error *error);

/* As file_digest, but past the page cache where the file system allows it. */
int disk_file_digest(const char *path, uint32_t *ret_crc, int64_t *ret_size, struct error *error);

/* Reads a file that this process has written, through the page cache; ERROR_CORRUPT if digest or size differ. Updates the file's time
 * every 32 MiB, for those who wait for it (disk_file_progress). */
int disk_file_check(const char *path, uint32_t crc, int64_t size, struct error *error);

/* For waiting for a file of another process: a number that changes whenever 32 MiB more of it were written to its disk or read back
 * by disk_file_check; -1 if there is no file. */
int64_t disk_file_progress(const char *path);

#endif
