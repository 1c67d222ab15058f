/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the embedded control plane and an operator as child processes, for `cox run` and `cox demo` without a
 * cluster. The embedded control plane (coxswain-standalone) is an API server and a node that runs pods as
 * processes of this machine. The kernel sends SIGTERM to both children if this process dies.
 */
#ifndef COXSWAIN_CLI_CONTROL_PLANE_H
#define COXSWAIN_CLI_CONTROL_PLANE_H

#include <stdbool.h>

#include "common/contract/state_directory.h"
#include "common/error.h"
#include "common/event_loop.h"

#define CONTROL_PLANE_RESTARTS 5
#define CONTROL_PLANE_RESTARTS_MS (10LL * 60 * 1000)

struct control_plane;

struct control_plane_options {
    const char *state_directory; /* created if missing */
    bool kept;           /* only serve what an earlier run has left in it: neither the operator nor pods are started */
    bool api_only;       /* start only the API server, in a directory that may be new: neither the operator nor pods */
    bool forget;         /* delete what the programs keep there (state_directory.h) */
    bool forget_volumes; /* with `forget`: delete the volumes too */
    void (*forgetting)(void *context);                     /* called just before volumes are deleted; may be NULL */
    void (*restarted)(void *context, const char *message); /* called when the operator was started again; may be NULL */
    void *context;
    const char *const *volumes; /* "claim=directory" */
    unsigned volume_count;
};

/* Locks a state directory as state_directory_lock does. While another command has locked it for less than `most`, waits for that up to ten
 * seconds, and runs `loop`: `cox get --state` has the lock only until it has its answer, and must not make `cox run` fail. */
int control_plane_lock(struct event_loop *loop, const char *state, enum state_use use, enum state_holder most,
                       int *ret_lock, struct error *error);

/* Starts both programs and returns once the API server is ready; runs `loop` while it waits. If the
 * control plane ends early, the error quotes the last line of its log; ERROR_TIMEOUT if it is not
 * ready in time. Waits for commands that only read from the directory, or start, as control_plane_lock does. With `kept`, uses the control
 * plane of another command that reads from the directory; it serves until the last command that uses it has ended. Leaves the directory
 * unchanged if another control plane uses it (ERROR_UNAVAILABLE), or if `forget` is set and it is not a state directory (ERROR_INVALID). */
int control_plane_start(struct event_loop *loop, const struct control_plane_options *options,
                        struct control_plane **ret_plane, struct error *error);
/* For a command that only reads: starts or shares one that is `kept`. Sets `*ret_plane` to NULL if the run goes on and has its own. Its
 * kubeconfig is <state>/kubeconfig in any case. */
int control_plane_read(struct event_loop *loop, const char *state, struct control_plane **ret_plane,
                       struct error *error);
/* Returns the path <state>/kubeconfig, which `plane` owns. */
const char *control_plane_kubeconfig(const struct control_plane *plane);
/* Starts the operator again if it has ended, at most CONTROL_PLANE_RESTARTS times within CONTROL_PLANE_RESTARTS_MS; the job's pods go on
 * meanwhile. Returns a message if that cannot be done or the control plane has ended, otherwise NULL. `plane` owns the message. */
const char *control_plane_trouble(struct control_plane *plane);
/* Ends the operator, then the control plane (which ends its pods), and frees `plane`. Each gets
 * SIGTERM, and SIGKILL if it takes too long. One that is `kept` gets STATE_END_SIGNAL, and goes on if other commands use it.
 * Runs `loop` while it waits. */
void control_plane_end(struct control_plane *plane);

#endif
