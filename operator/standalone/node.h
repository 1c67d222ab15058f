/* SPDX-License-Identifier: Apache-2.0
 *
 * The node of the embedded control plane: runs the containers of pods as processes
 * of this machine. It stands for kubelet, container runtime, scheduler and cluster
 * DNS. Images are not run: the node runs the command that the container's spec names,
 * and an event on each pod says so. A container without a command is refused.
 *
 * Each pod has
 *   - an address of its own, 127.x.y.z, from a /16 that no other control plane on
 *     this machine uses, so that fixed ports never clash;
 *   - a session and a directory (<state>/pods/<uid>). With NODE_NAMESPACES it also has
 *     mount, PID and UTS namespaces: its own /etc/hosts, volumes at their mount paths,
 *     /dev/termination-log. With NODE_REWRITE, mount paths in environment and arguments
 *     are replaced by the directories of this machine, and COXSWAIN_HOSTS_FILE and
 *     COXSWAIN_TERMINATION_LOG name the files that could not be mounted;
 *   - the library coxswain-pod.so (preload/pod_network.c), which makes "all interfaces"
 *     and localhost mean the pod's address. It is loaded into all programs except
 *     Coxswain's own, which do this by themselves.
 * A command without a slash is looked for beside this executable, then in PATH.
 *
 * GPUs are shared out (node_gpus.h): a pod that requests some waits, unscheduled, until
 * they are free; CUDA_VISIBLE_DEVICES names them, and is empty in all other containers.
 *
 * No process outlives the node: each container has a supervisor that the kernel
 * kills with this process. With NODE_NAMESPACES it is the first process of a PID
 * namespace, so the kernel kills its descendants too; with NODE_REWRITE it is a child
 * subreaper and kills all descendants before it exits.
 *
 * Not enforced: other resource requests and limits (so no container is OOMKilled),
 * security contexts, container ports. The node runs on the given loop, in the thread
 * that called node_start; the kernel kills the pods when that thread ends.
 */
#ifndef COXSWAIN_STANDALONE_NODE_H
#define COXSWAIN_STANDALONE_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/event_loop.h"
#include "operator/standalone/pod_log.h"

struct registry;
struct node;

#define NODE_NAME "localhost"

/*  name, value of --isolation */
#define NODE_ISOLATIONS(X)                                                                                             \
    X(AUTO, "auto")             /* namespaces where the kernel allows them, else rewrite */                            \
    X(NAMESPACES, "namespaces") /* fail where the kernel does not allow them */                                        \
    X(REWRITE, "rewrite")
enum node_isolation {
#define X(name, word) NODE_##name,
    NODE_ISOLATIONS(X)
#undef X
};
bool node_isolation_parse(const char *word, enum node_isolation *ret_isolation);
const char *node_isolation_word(enum node_isolation isolation);

/* A --volume CLAIM=DIRECTORY, for all namespaces. Other claims are
 * <state>/volumes/<namespace>/<claim>. */
struct node_volume {
    const char *claim;
    const char *directory;
};

/* Strings and the volume list are borrowed until node_free. */
struct node_options {
    struct event_loop *loop;
    struct registry *registry;
    const char *state_directory;
    const char *program_directory; /* searched first for commands without a slash; NULL: this executable's */
    enum node_isolation isolation;
    const struct node_volume *volumes;
    unsigned volume_count;
};

/* Runs the pods of the registry. Pods that an earlier process left unfinished become Failed with a
 * DisruptionTarget condition, since their processes died with it. */
int node_start(const struct node_options *options, struct node **ret_node, struct error *error);

/* The isolation in use: NODE_NAMESPACES or NODE_REWRITE. */
enum node_isolation node_isolation_used(const struct node *node);
/* Why namespaces are not used; "" when they are. */
const char *node_isolation_reason(const struct node *node);

/* Ends every pod by SIGTERM, then by SIGKILL after its grace period, at most `grace_ms`. No
 * container starts any more. `stopped` is called once, on the loop, when no process is left. */
typedef void node_stopped(void *context);
void node_stop(struct node *node, int64_t grace_ms, node_stopped *stopped, void *context);
/* Kills the processes that still run. */
void node_free(struct node *node);

/* Answers GET …/pods/<name>/log; a pod_log_hook whose context is the node. Reads
 * <state>/pods/<uid>/logs/<container>.log, in the CRI format "<RFC 3339 time> stdout|stderr F|P
 * <text>". A follower is served until the container has ended. */
int node_pod_log(void *context, const struct json *pod, const struct pod_log_query *query,
                 struct http_exchange *exchange, struct error *error);
/* Answers GET …/pods/<name>/log from the logs that an earlier process has stored, for a control plane that runs no node. The context is a
 * struct node_options, of which only the state directory is used. Does not follow a log. */
int node_stored_log(void *context, const struct json *pod, const struct pod_log_query *query,
                    struct http_exchange *exchange, struct error *error);

#endif
