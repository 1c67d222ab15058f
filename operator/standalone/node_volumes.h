/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepares the volumes of a pod on the embedded control plane's node as directories of this machine, and lists a container's mounts of
 * them.
 *
 *   persistentVolumeClaim  the directory of --volume, else <state>/volumes/<namespace>/<claim>,
 *                          made when missing; the claim itself need not exist
 *   emptyDir               a directory below the pod's
 *   configMap, secret, downwardAPI, projected
 *                          a directory below the pod's, updated when its sources change
 *   hostPath               the path itself; DirectoryOrCreate and FileOrCreate make it
 */
#ifndef COXSWAIN_STANDALONE_NODE_VOLUMES_H
#define COXSWAIN_STANDALONE_NODE_VOLUMES_H

#include "operator/standalone/node.h"
#include "operator/standalone/node_environment.h"
#include "operator/standalone/node_mounts.h"

struct volume_source {
    const struct node_options *options;
    const struct environment_source *configuration; /* the pod, ConfigMaps, Secrets */
    const char *pod_directory;
};

/* A list of mount points that owns its strings. */
struct volume_mounts {
    struct mount_point *points;
    size_t count;
};

/* Prepares the volumes that `container` mounts. ERROR_NOT_FOUND when a ConfigMap, Secret or
 * hostPath that is not optional is missing, ERROR_UNSUPPORTED for kinds of volumes that this node
 * does not support. */
int volume_mounts_resolve(const struct volume_source *source, const struct json *container,
                          struct volume_mounts *ret_mounts, struct error *error);
/* Updates prepared volumes from their ConfigMaps and Secrets. The files of one that was deleted are
 * kept. */
void volumes_refresh(const struct volume_source *source);
void volume_mounts_add(struct volume_mounts *mounts, const char *source, const char *path, bool read_only);
void volume_mounts_release(struct volume_mounts *mounts);

#endif
