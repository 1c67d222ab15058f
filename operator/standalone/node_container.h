/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepares one container of a pod for its start on the embedded control plane's node (node.h): turns its description in the API into a
 * command, an environment, mounts and files. Preparing starts no process. If a ConfigMap, Secret or volume is missing, it fails with
 * ERROR_NOT_FOUND, and the node tries again later.
 */
#ifndef COXSWAIN_STANDALONE_NODE_CONTAINER_H
#define COXSWAIN_STANDALONE_NODE_CONTAINER_H

#include "operator/standalone/node_volumes.h"

/* Longer termination messages lose their beginning, as with a kubelet. */
#define TERMINATION_MESSAGE_MAX 4096

/* A container that is ready to start. Owns all members. */
struct container_launch {
    char *executable;
    char **arguments;
    struct environment environment;
    char *directory;
    char *hostname;
    char *temporary; /* TMPDIR */
    struct volume_mounts mounts;
    struct mount_plan plan; /* used when `namespaces` is set */
    bool namespaces;
};

/* ERROR_NOT_FOUND when a ConfigMap, Secret or volume is missing, which may be created later;
 * ERROR_INVALID when the command cannot be run as described. */
int container_launch_prepare(const struct volume_source *source, const struct json *container, bool namespaces,
                             struct container_launch *ret_launch, struct error *error);
void container_launch_release(struct container_launch *launch);

/* The pod's TMPDIR. It lies below the machine's own TMPDIR, since paths in the state directory are
 * too long for Unix sockets. Made with the first container, removed when the pod is over. Release
 * with free(). */
char *pod_temporary_path(const char *uid);

/* <pod directory>/hosts, /logs/<container>.log; release with free(). */
char *pod_hosts_path(const char *pod_directory);
char *container_log_path(const char *pod_directory, const char *container);

/* Reads the container's termination log; when that is empty and the policy is
 * FallbackToLogsOnError, the end of its log. Release with free(). */
char *container_termination_message(const char *pod_directory, const struct json *container, int exit_code);

#endif
