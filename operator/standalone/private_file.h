/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that only their owner may read (mode 0600) and that are there whole or
 * not at all: written beside, synced, renamed into place.
 */
#ifndef COXSWAIN_STANDALONE_PRIVATE_FILE_H
#define COXSWAIN_STANDALONE_PRIVATE_FILE_H

#include <stddef.h>

#include "common/error.h"

int private_file_write(const char *path, const void *bytes, size_t length, struct error *error);
/* A directory with mode 0700; its parents must exist. No error when it is there. */
int private_directory_make(const char *path, struct error *error);

#endif
