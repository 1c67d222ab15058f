/* SPDX-License-Identifier: Apache-2.0
 *
 * System calls for the files that a job keeps on shared storage (checkpoints, records,
 * claims, exports), which other users of the storage may replace by symbolic links. A
 * call never follows a link in the last part of a path, nor in a directory above it that
 * Coxswain has created itself: those have names of the checkpoint's layout (step-…,
 * .saving-…, .NAME.chiefs, …). The directory that a user names may be a link.
 *
 * All return -1 and set errno; ELOOP: a link is in the way.
 */
#ifndef COXSWAIN_CHECKPOINT_SAFE_PATH_H
#define COXSWAIN_CHECKPOINT_SAFE_PATH_H

#include <sys/stat.h>

/* Also does not wait for the other end of a FIFO. With O_DIRECTORY a link is followed if the directory's name is the user's. */
int safe_open(const char *path, int flags, mode_t mode);
int safe_mkdir(const char *path, mode_t mode);
int safe_rename(const char *from, const char *to);
/* Each path takes the other's name in one step. */
int safe_exchange(const char *one, const char *other);
int safe_link(const char *from, const char *to);
int safe_unlink(const char *path);
int safe_rmdir(const char *path);
/* Describes a link itself, not what it points to. */
int safe_stat(const char *path, struct stat *ret_status);

#endif
