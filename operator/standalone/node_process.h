/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts a container's command as a process of this machine, for the embedded control plane's node, and reports its output and end to
 * callbacks on the event loop. A supervisor process (node_supervisor.c) is the command's parent. The supervisor has a session and, with
 * `mounts`, mount, PID and UTS namespaces of its own. All data that the supervisor needs is prepared before it is cloned, because it may
 * only make system calls.
 */
#ifndef COXSWAIN_STANDALONE_NODE_PROCESS_H
#define COXSWAIN_STANDALONE_NODE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/event_loop.h"
#include "operator/standalone/node_mounts.h"

struct process;

/* All borrowed during process_start. */
struct process_spec {
    const char *executable; /* a path */
    char *const *arguments; /* argv, NULL-terminated */
    char *const *environment;
    const char *directory;
    const char *hostname;            /* in its UTS namespace; NULL: the machine's */
    const struct mount_plan *mounts; /* NULL: no namespaces */
};

enum process_stream { PROCESS_STDOUT, PROCESS_STDERR };

/* Called from the loop: first either `started` or `failed`, once; last `ended`, once, also after `failed`. */
struct process_events {
    void (*started)(void *context, pid_t pid);
    void (*failed)(void *context, const char *message); /* the command never ran */
    void (*output)(void *context, enum process_stream stream, const char *bytes, size_t length);
    /* `exit_code` is 128 + n for signal n, as in a shell. No descendant is alive, and `output` has
     * been called for all output. May free the process. */
    void (*ended)(void *context, int exit_code);
    void *context;
};

int process_start(struct event_loop *loop, const struct process_spec *spec, const struct process_events *events,
                  struct process **ret_process, struct error *error);
/* Sends SIGTERM or SIGINT to the command only, as a container runtime does. */
void process_signal(struct process *process, int signal_number);
/* Sends SIGKILL to the command and all descendants. */
void process_kill(struct process *process);
/* Kills the processes that still run and waits for them. No callback is called. */
void process_free(struct process *process);

/* Checks that this machine allows mount, PID and UTS namespaces, directly or within a user
 * namespace. Returns -1 with the reason in `error` when it does not. */
int process_probe_namespaces(struct error *error);

#endif
