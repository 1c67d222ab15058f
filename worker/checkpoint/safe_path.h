/* SPDX-License-Identifier: Apache-2.0
 *
 * Provides system calls that do not follow symbolic links, for the files that a job keeps on shared storage
 * (checkpoints, records, claims, exports) and that other users of the storage may replace by links.
 * No call follows a link in the last part of a path, nor in a directory above it that Coxswain has
 * created (step-…, .saving-…, .NAME.chiefs, …). The directory that a user names may be a link.
 *
 * On failure all return -1 and set errno, to ELOOP if they met a link.
 */
#ifndef COXSWAIN_CHECKPOINT_SAFE_PATH_H
#define COXSWAIN_CHECKPOINT_SAFE_PATH_H

#include <sys/stat.h>

/* Opens a file; does not wait for the other end of a FIFO. With O_DIRECTORY, follows a link if the
 * directory is one that a user names. */
int safe_open(const char *path, int flags, mode_t mode);
int safe_mkdir(const char *path, mode_t mode);
int safe_rename(const char *from, const char *to);
/* Swaps the two names atomically. */
int safe_exchange(const char *one, const char *other);
int safe_link(const char *from, const char *to);
int safe_unlink(const char *path);
int safe_rmdir(const char *path);
/* Describes a link itself, not what it points to. */
int safe_stat(const char *path, struct stat *ret_status);

#endif
