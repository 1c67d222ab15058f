/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads, writes, replaces and removes the files that a job keeps on shared storage. Others
 * may write there too: links that they put in a file's place are not followed
 * (safe_path.h), and only regular files are read.
 *
 * The system calls that reach the disk are in one table, so that tests can end the process
 * at each of them, lose what was not synced, or fill the disk.
 */
#ifndef COXSWAIN_CHECKPOINT_FILE_H
#define COXSWAIN_CHECKPOINT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buffer.h"
#include "common/error.h"

/* The calls return -1 and set errno on failure, as in POSIX. */
struct file_calls {
    int (*open)(const char *path, int flags, mode_t mode);
    ssize_t (*write)(int descriptor, const void *bytes, size_t length);
    int (*fsync)(int descriptor);
    int (*close)(int descriptor);
    int (*mkdir)(const char *path, mode_t mode);
    int (*rename)(const char *from, const char *to);
    int (*link)(const char *from, const char *to);
    int (*unlink)(const char *path);
    int (*rmdir)(const char *path);
    int (*exchange)(const char *one, const char *other);                         /* swaps two names atomically */
    int (*sync_range)(int descriptor, off_t from, off_t length, unsigned flags); /* sync_file_range(2) */
};

/* The system's calls, unless a test has replaced them. Must not change while a save is running. */
extern struct file_calls file_calls;

/* Creates a file and opens it for writing. A file of that name is removed first. */
int file_create(const char *path, int *ret_descriptor, struct error *error);
/* Opens a regular file for reading. ERROR_CORRUPT if the path names anything else. */
int file_open(const char *path, int *ret_descriptor, struct error *error);
/* Appends a whole regular file to `buffer`. ERROR_TOO_LARGE: it does not fit below the buffer's ceiling. */
int file_read(const char *path, struct buffer *buffer, struct error *error);
/* Returns whether there is anything at the path, a link included. */
bool file_exists(const char *path);

/* Writes a whole new file, syncs and closes it. A file of that name is removed first. A failure may leave a part of
 * the new file. */
int file_write(const char *path, const void *bytes, size_t length, struct error *error);

/* Write a whole file that readers never see half written: the bytes go to a draft beside it first,
 * whose name contains FILE_DRAFT_MARK, and are synced there. file_write_exclusive fails with
 * ERROR_ALREADY_EXISTS if the path exists, and writes in place on storage without hard links;
 * file_replace replaces what is there. A failure may leave the draft (file_remove_drafts). Neither
 * syncs the directory. */
#define FILE_DRAFT_MARK ".draft-"
int file_write_exclusive(const char *path, const void *bytes, size_t length, struct error *error);
int file_replace(const char *path, const void *bytes, size_t length, struct error *error);

/* Returns a name for a draft of `path` that no other process on any machine chooses; free() it. */
int file_draft_name(const char *path, char **ret_draft, struct error *error);
/* Removes all drafts of the file `name`, also those that another process is still writing (it then
 * finds its draft missing). Ignores failures. */
void file_remove_drafts(const char *directory, const char *name);

/* Calls `act` for each entry of a directory but "." and "..", until one fails. */
int file_each_entry(const char *directory, int (*act)(const void *context, const char *entry, struct error *error),
                    const void *context, struct error *error);

/* Removes the files of a directory but the `most` that were changed last. Ignores failures. */
void file_keep_newest(const char *directory, size_t most);

/* Writes all bytes to an open descriptor. */
int file_write_all(int descriptor, const void *bytes, size_t length, struct error *error);

/* Makes the names in a directory durable. */
int file_sync_directory(const char *path, struct error *error);

/* Creates the directory and its missing parents. Succeeds if it exists. */
int file_make_directories(const char *path, struct error *error);

/* Removes a directory and the files in it (checkpoints have no deeper levels). If the path is a
 * file or a link, it is itself removed, not its target. Succeeds if nothing is there. */
int file_remove_directory(const char *path, struct error *error);

/* Returns the CRC-32C and the size of a file. */
int file_digest(const char *path, uint32_t *ret_crc, int64_t *ret_size, struct error *error);

/* Returns "directory/name"; free() it. */
char *file_path_join(const char *directory, const char *name);

#endif
