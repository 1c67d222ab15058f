/* SPDX-License-Identifier: Apache-2.0
 *
 * A pod's volumes as directories of this machine, and its containers' mounts.
 *
 *   persistentVolumeClaim  the directory given for the claim, else <state>/volumes/<namespace>/<claim>, made when
 *                          missing; the claim itself need not exist
 *   emptyDir, configMap, secret, downwardAPI, projected (of those)   below the pod's directory, the latter kept current
 *   hostPath               as it is; types DirectoryOrCreate and FileOrCreate make it
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

/* Prepares the volumes that `container` mounts. ERROR_NOT_FOUND names a ConfigMap, Secret or hostPath that is missing
 * (and not optional), ERROR_UNSUPPORTED a kind of volume that this node does not have. */
int volume_mounts_resolve(const struct volume_source *source, const struct json *container,
                          struct volume_mounts *ret_mounts, struct error *error);
/* Those that have been prepared show what ConfigMaps and Secrets hold now; one that is gone leaves what it held. */
void volumes_refresh(const struct volume_source *source);
void volume_mounts_add(struct volume_mounts *mounts, const char *source, const char *path, bool read_only);
void volume_mounts_release(struct volume_mounts *mounts);

#endif
