/* SPDX-License-Identifier: Apache-2.0
 *
 * A container as a process: a supervisor (node_supervisor.c) in a session and,
 * where asked for, mount, PID and UTS namespaces of its own, and below it the
 * command. Everything is prepared here; the supervisor only makes system calls.
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
    const char *hostname;            /* with namespaces; NULL: the machine's */
    const struct mount_plan *mounts; /* NULL: no namespaces */
};

enum process_stream { PROCESS_STDOUT, PROCESS_STDERR };

/* Called from the loop. Either `failed` or `started` comes first, `ended` is last and comes exactly once. */
struct process_events {
    void (*started)(void *context, pid_t pid);
    void (*failed)(void *context, const char *message); /* the command never ran */
    void (*output)(void *context, enum process_stream stream, const char *bytes, size_t length);
    /* As a shell counts: 128 + n for signal n. No descendant is alive, all output was handed over. May free the process. */
    void (*ended)(void *context, int exit_code);
    void *context;
};

int process_start(struct event_loop *loop, const struct process_spec *spec, const struct process_events *events,
                  struct process **ret_process, struct error *error);
/* To the command alone (SIGTERM and SIGINT), as a container runtime does. */
void process_signal(struct process *process, int signal_number);
/* SIGKILL to the command and every descendant. */
void process_kill(struct process *process);
/* Kills what still runs and waits for it; no callback is called. */
void process_free(struct process *process);

/* Whether mount, PID and UTS namespaces can be had here, directly or within a user namespace; `error` says why not. */
int process_probe_namespaces(struct error *error);

#endif
