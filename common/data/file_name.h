/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks at the names of data files, by which formats are recognised and messages are written.
 */
#ifndef COXSWAIN_COMMON_DATA_FILE_NAME_H
#define COXSWAIN_COMMON_DATA_FILE_NAME_H

#include <stdbool.h>

/* Returns the last part of a path. */
const char *file_name_of(const char *path);

/* Returns whether a path ends in `end`, such as ".csv"; one that ends in ".gz" counts without that. */
bool file_name_ends(const char *path, const char *end);

#endif
