/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates directories with their parents, removes directories with their contents, and measures them. Removing and measuring do not follow
 * symbolic links or enter other mounts. Removing silently keeps what cannot be removed.
 */
#ifndef COXSWAIN_COMMON_DIRECTORY_H
#define COXSWAIN_COMMON_DIRECTORY_H

#include <stdint.h>

#include "common/error.h"

/* Creates a directory and its parents (mode 0755), like mkdir -p: succeeds if the directory exists already, and fails with
 * ERROR_ALREADY_EXISTS if `path` is something else. */
int directory_make(const char *path, struct error *error);

/* Removes a file, or a directory with its contents. */
void directory_remove(const char *path);

/* Returns how many bytes a file, or a directory with its contents, occupies on the disk; what cannot be read counts as 0. */
int64_t directory_bytes(const char *path);

#endif
