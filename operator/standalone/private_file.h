/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes files of the state directory that only their owner may read (mode 0600): certificates, token, kubeconfig, port. The bytes go to a
 * temporary file that is synced and renamed into place, so that a reader never sees an incomplete file.
 */
#ifndef COXSWAIN_STANDALONE_PRIVATE_FILE_H
#define COXSWAIN_STANDALONE_PRIVATE_FILE_H

#include <stddef.h>

#include "common/error.h"

int private_file_write(const char *path, const void *bytes, size_t length, struct error *error);
/* Makes a directory with mode 0700 unless it exists. Its parent must exist. */
int private_directory_make(const char *path, struct error *error);

#endif
