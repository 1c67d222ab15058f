/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes large files sequentially and reads them back. The kernel begins to write to the disk with
 * the first bytes, and at most 32 MiB of the file wait in the page cache to be written. A second
 * thread computes the digest meanwhile.
 *
 * DISK_FILE_PAST_CACHE bypasses the page cache (O_DIRECT) on local file systems (ext4, XFS, Btrfs,
 * F2FS), so that the file is later read back from the disk, not from memory. Bytes that are not
 * aligned to blocks, in memory or in the file, are copied into an aligned buffer first; a last
 * incomplete block goes through the page cache. On other file systems, and for files of less than
 * 1 MiB, DISK_FILE_PAST_CACHE is the same as DISK_FILE_CACHED.
 */
#ifndef COXSWAIN_CHECKPOINT_DISK_FILE_H
#define COXSWAIN_CHECKPOINT_DISK_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Bytes whose address and file offset are multiples of this are written without a copy. */
#define DISK_FILE_BLOCK 4096

enum disk_file_way { DISK_FILE_CACHED, DISK_FILE_PAST_CACHE };

struct disk_file_span {
    const void *bytes;
    size_t length;
};

/* Writes all spans into a new file, then syncs and closes it. A file of that name is removed first.
 * Returns the file's CRC-32C and size. */
int disk_file_write(const char *path, const struct disk_file_span *spans, unsigned count, enum disk_file_way way,
                    uint32_t *ret_crc, int64_t *ret_size, struct error *error);

/* Returns a file's CRC-32C and size as file_digest does, but bypasses the page cache where
 * possible. */
int disk_file_digest(const char *path, uint32_t *ret_crc, int64_t *ret_size, struct error *error);

/* Reads a file that this process has written, through the page cache. ERROR_CORRUPT if digest or
 * size differ. Updates the file's modification time every 32 MiB, so that a process that waits for
 * the file sees progress (disk_file_progress). */
int disk_file_check(const char *path, uint32_t crc, int64_t size, struct error *error);

/* Returns a number that changes whenever the process that writes the file has written 32 MiB more
 * of it to the disk, or read 32 MiB back (disk_file_check). -1 if there is no file. */
int64_t disk_file_progress(const char *path);

#endif
