/* SPDX-License-Identifier: Apache-2.0
 *
 * The node of the embedded control plane: what kubelet, container runtime,
 * scheduler and cluster DNS are to a real one. It watches pods in the registry and
 * runs each container as a process of this machine; `image` is not run, and an
 * event on each pod says so and which command ran instead.
 *
 * What a pod gets
 *   - an address of its own, 127.x.y.z, from a /16 that no other control plane of
 *     this machine uses; so fixed ports never clash;
 *   - a session, a directory (<state>/pods/<uid>) and, with NODE_NAMESPACES, mount,
 *     PID and UTS namespaces: its own /etc/hosts, volumes at their mount paths,
 *     /dev/termination-log. With NODE_REWRITE mount paths are replaced by real
 *     directories in environment and arguments, COXSWAIN_HOSTS_FILE and
 *     COXSWAIN_TERMINATION_LOG name what could not be mounted;
 *   - where its program is not one of ours, coxswain-pod.so (preload/pod_network.c), so
 *     that "all interfaces" and localhost mean the pod's address;
 *   - a bare command name is looked for beside this executable first, then in PATH.
 *
 * No orphan: each container has a supervisor that the kernel kills with this
 * process. With NODE_NAMESPACES it is the first process of a PID namespace, so the
 * kernel takes every descendant with it; with NODE_REWRITE it is a child subreaper
 * and kills all descendants before it leaves.
 *
 * Not enforced: resource requests and limits (so nothing is ever OOMKilled),
 * security contexts, container ports. Everything runs on the given loop, in the
 * thread that called node_start (the kernel ends the pods with that thread).
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

/*  name, the switch's word */
#define NODE_ISOLATIONS(X)                                                                                             \
    X(AUTO, "auto")             /* namespaces where the kernel lets us, else rewrite */                                \
    X(NAMESPACES, "namespaces") /* fail where it does not */                                                           \
    X(REWRITE, "rewrite")
enum node_isolation {
#define X(name, word) NODE_##name,
    NODE_ISOLATIONS(X)
#undef X
};
bool node_isolation_parse(const char *word, enum node_isolation *ret_isolation);
const char *node_isolation_word(enum node_isolation isolation);

/* --volume CLAIM=DIRECTORY, for every namespace; other claims live in <state>/volumes/<namespace>/<claim>. */
struct node_volume {
    const char *claim;
    const char *directory;
};

/* Strings and the volume list are borrowed until node_free. */
struct node_options {
    struct event_loop *loop;
    struct registry *registry;
    const char *state_directory;
    const char *program_directory; /* where a bare command is looked for first; NULL: this executable's */
    enum node_isolation isolation;
    const struct node_volume *volumes;
    unsigned volume_count;
};

/* Pods that an earlier life of this state directory left unfinished become Failed with a DisruptionTarget condition:
 * their processes died with it. Then watches and runs what the registry holds. */
int node_start(const struct node_options *options, struct node **ret_node, struct error *error);

/* AUTO is resolved by now. */
enum node_isolation node_isolation_used(const struct node *node);
/* Why namespaces are not used, "" when they are. */
const char *node_isolation_reason(const struct node *node);

/* Ends every pod: SIGTERM, then SIGKILL after each pod's grace period (at most `grace_ms` for all). Starts nothing new.
 * `stopped` is called once on the loop when no process is left. */
typedef void node_stopped(void *context);
void node_stop(struct node *node, int64_t grace_ms, node_stopped *stopped, void *context);
/* Kills what still runs. */
void node_free(struct node *node);

/* GET …/pods/<name>/log, a pod_log_hook whose context is the node. Files: <state>/pods/<uid>/logs/<container>.log, in the
 * CRI format "<RFC 3339 time> stdout|stderr F|P <text>". A follower is served until the container has ended. */
int node_pod_log(void *context, const struct json *pod, const struct pod_log_query *query,
                 struct http_exchange *exchange, struct error *error);

#endif
