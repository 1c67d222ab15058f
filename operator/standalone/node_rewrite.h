/* SPDX-License-Identifier: Apache-2.0
 *
 * Mount paths without mounts: each occurrence of a mount path in an argument or an
 * environment value becomes the directory that would have been mounted there.
 * An occurrence begins where no path could go on to the left and ends at "/", at a
 * character that ends a path, or with the text.
 */
#ifndef COXSWAIN_STANDALONE_NODE_REWRITE_H
#define COXSWAIN_STANDALONE_NODE_REWRITE_H

#include "operator/standalone/node_mounts.h"

/* The longest mount path wins. Release with free(). */
char *paths_rewrite(const char *text, const struct mount_point *points, size_t point_count);

#endif
