/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens regular files for reading, and nothing else: a FIFO or a device in a file's place
 * would make the reader wait for ever.
 */
#ifndef COXSWAIN_COMMON_REGULAR_FILE_H
#define COXSWAIN_COMMON_REGULAR_FILE_H

#include <sys/types.h>

#include "common/error.h"

/* Opens the file that a user names; symbolic links are followed. ERROR_INVALID if it is no regular file. */
int regular_file_open(const char *path, int *ret_descriptor, off_t *ret_size, struct error *error);

/* Checks a descriptor that was opened with O_NONBLOCK: ERROR_INVALID, with the path, if it is no regular file. */
int regular_file_check(int descriptor, const char *path, off_t *ret_size, struct error *error);

#endif
