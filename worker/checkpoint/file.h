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

/* The calls as in POSIX: -1 and errno on failure. */
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
    int (*exchange)(const char *one, const char *other); /* both are there: each takes the other's name, in one step */
    int (*sync_range)(int descriptor, off_t from, off_t length, unsigned flags); /* sync_file_range(2) */
};

/* The system's own calls unless a test has put others in place. Not to be changed while a save is under way. */
extern struct file_calls file_calls;

/* Opens a file to write, whose name was not there or is removed first. */
int file_create(const char *path, int *ret_descriptor, struct error *error);
/* Opens a regular file to read. ERROR_CORRUPT if something else has its name. */
int file_open(const char *path, int *ret_descriptor, struct error *error);
/* Reads a regular file whole. */
int file_read(const char *path, struct buffer *buffer, struct error *error);
bool file_exists(const char *path);

/* Writes a new file whole, then syncs and closes it; a file that had the name is removed first. */
int file_write(const char *path, const void *bytes, size_t length, struct error *error);

/* Both write a draft beside it first (FILE_DRAFT_MARK in its name), so that nobody ever sees a file half written: one creates a
 * file that must not be there yet (ERROR_ALREADY_EXISTS), the other replaces it in one step. */
#define FILE_DRAFT_MARK ".draft-"
int file_write_exclusive(const char *path, const void *bytes, size_t length, struct error *error);
int file_replace(const char *path, const void *bytes, size_t length, struct error *error);

/* The name of such a draft, which no other process takes, whatever machine or container it runs in; free() it. */
int file_draft_name(const char *path, char **ret_draft, struct error *error);
/* Removes the drafts of a file that others have left; whoever still writes one finds it gone. What cannot be removed stays. */
void file_remove_drafts(const char *directory, const char *name);

/* Writes all bytes to an open descriptor, in as many calls as it takes. */
int file_write_all(int descriptor, const void *bytes, size_t length, struct error *error);

/* Makes the names in a directory durable. */
int file_sync_directory(const char *path, struct error *error);

/* Creates the directory and its missing parents; fine when it is there. */
int file_make_directories(const char *path, struct error *error);

/* Removes a directory and the files in it (checkpoints hold no deeper levels). A file or a link of that name is itself removed, not
 * what it points to. Succeeds if nothing is there. */
int file_remove_directory(const char *path, struct error *error);

/* CRC-32C and size of a file, read in blocks. */
int file_digest(const char *path, uint32_t *ret_crc, int64_t *ret_size, struct error *error);

/* "directory/name"; free with free(). */
char *file_path_join(const char *directory, const char *name);

#endif
