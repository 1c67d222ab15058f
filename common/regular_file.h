/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens regular files for reading, such as the data and checkpoints that a job names, and refuses everything else: reading from a FIFO or a
 * device could block forever.
 */
#ifndef COXSWAIN_COMMON_REGULAR_FILE_H
#define COXSWAIN_COMMON_REGULAR_FILE_H

#include <sys/types.h>

#include "common/error.h"

/* Opens a file that the user names; close the descriptor with close(). Follows symbolic links. ERROR_INVALID if it is not a regular
 * file. */
int regular_file_open(const char *path, int *ret_descriptor, off_t *ret_size, struct error *error);

/* Checks a descriptor that was opened with O_NONBLOCK. ERROR_INVALID, with `path` in the message, if it is not a regular file. */
int regular_file_check(int descriptor, const char *path, off_t *ret_size, struct error *error);

#endif
