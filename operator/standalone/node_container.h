/* SPDX-License-Identifier: Apache-2.0
 *
 * One container of a pod, from its description in the API to a process: command,
 * environment, mounts, files.
 */
#ifndef COXSWAIN_STANDALONE_NODE_CONTAINER_H
#define COXSWAIN_STANDALONE_NODE_CONTAINER_H

#include "operator/standalone/node_volumes.h"

/* At most so much of a termination log is kept, as a kubelet does. */
#define TERMINATION_MESSAGE_MAX 4096

/* All that a start needs; owns everything. */
struct container_launch {
    char *executable;
    char **arguments;
    struct environment environment;
    char *directory;
    char *hostname;
    char *temporary; /* TMPDIR */
    struct volume_mounts mounts;
    struct mount_plan plan; /* with namespaces */
    bool namespaces;
};

/* ERROR_NOT_FOUND of a ConfigMap, Secret or volume: may come later. ERROR_INVALID: the command cannot be run as it is
 * described. */
int container_launch_prepare(const struct volume_source *source, const struct json *container, bool namespaces,
                             struct container_launch *ret_launch, struct error *error);
void container_launch_release(struct container_launch *launch);

/* The directory that a pod's programs get as TMPDIR: the pod's own, and below the machine's, since a path in the state directory is
 * too long for Unix sockets. Made with the first container, removed once the pod is over. Release with free(). */
char *pod_temporary_path(const char *uid);

/* <pod directory>/hosts, /logs/<container>.log; release with free(). */
char *pod_hosts_path(const char *pod_directory);
char *container_log_path(const char *pod_directory, const char *container);

/* What the container left in its termination log; where that is empty and the policy is FallbackToLogsOnError, the end of
 * its log. Release with free(). */
char *container_termination_message(const char *pod_directory, const struct json *container, int exit_code);

#endif
