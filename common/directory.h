/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole directories: making them with their parents, removing them with what is in
 * them.
 */
#ifndef COXSWAIN_COMMON_DIRECTORY_H
#define COXSWAIN_COMMON_DIRECTORY_H

#include "common/error.h"

/* mkdir -p. */
int directory_make(const char *path, struct error *error);

/* Removes a directory with all that is in it; links are not followed, other mounts are left alone. What cannot be removed
 * stays. */
void directory_remove(const char *path);

#endif
