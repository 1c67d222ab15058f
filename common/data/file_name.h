/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes the file name from a path, for messages, and checks its ending, by which a data file's format is recognised.
 */
#ifndef COXSWAIN_COMMON_DATA_FILE_NAME_H
#define COXSWAIN_COMMON_DATA_FILE_NAME_H

#include <stdbool.h>

#include "common/buffer.h"

/* Returns the part of a path after its last slash, or the whole path if it has none. The result points into `path`. */
const char *file_name_of(const char *path);

/* Returns whether a path ends in `end`, such as ".csv". A ".gz" at the end of the path is ignored: "a.csv.gz" ends in ".csv". */
bool file_name_ends(const char *path, const char *end);

/* Appends what helps with a path that does not exist: "; did you mean customers.csv?", or some names of what is in its folder. Appends
 * nothing if there is no such folder, or it is empty. */
void file_name_suggest(const char *path, struct buffer *out);

#endif
