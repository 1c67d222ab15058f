/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces mount paths in arguments and environment values by the directories that would be mounted there, for pods that the embedded
 * control plane's node runs without mount namespaces. A mount path is replaced only as a whole path or as its leading components: not in
 * the middle of a longer path or name.
 */
#ifndef COXSWAIN_STANDALONE_NODE_REWRITE_H
#define COXSWAIN_STANDALONE_NODE_REWRITE_H

#include "operator/standalone/node_mounts.h"

/* Returns `text` with its mount paths replaced. If several of the mount points match, the longest is used. Release with free(). */
char *paths_rewrite(const char *text, const struct mount_point *points, size_t point_count);

#endif
