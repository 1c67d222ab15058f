/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of paths. The objects of .coxswain-sync/pending/ (sync.h) have the text of one: a folder in each line, without a slash at its end.
 */
#ifndef COXSWAIN_STORAGE_SYNC_NAMES_H
#define COXSWAIN_STORAGE_SYNC_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Begin with {0}. */
struct sync_names {
    char **names; /* owned */
    size_t count;
};

/* Copies the name. */
void sync_names_add(struct sync_names *names, const char *name, size_t length);
/* Adds each line of the text, which may have any bytes. What follows a NUL in a line is not part of its name. */
void sync_names_parse(struct sync_names *names, const char *text, size_t length);
/* Has to be called after the last name was added, and before sync_names_has. */
void sync_names_sort(struct sync_names *names);
bool sync_names_has(const struct sync_names *names, const char *name);
/* Whether the folder in which a file is directly is one of the names; "" is the folder of a path without a slash. */
bool sync_names_has_folder_of(const struct sync_names *names, const char *path);
void sync_names_release(struct sync_names *names);

#endif
