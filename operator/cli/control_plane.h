/* SPDX-License-Identifier: Apache-2.0
 *
 * The embedded control plane and an operator as child processes, for a command
 * that was given no cluster. They end with this process, whichever way it ends.
 */
#ifndef COXSWAIN_CLI_CONTROL_PLANE_H
#define COXSWAIN_CLI_CONTROL_PLANE_H

#include <stdbool.h>

#include "common/error.h"
#include "common/event_loop.h"

struct control_plane;

struct control_plane_options {
    const char *state_directory;       /* made when missing */
    bool forget;                       /* what the programs have kept there (state_directory.h), */
    bool forget_volumes;               /* and the volumes, */
    void (*forgetting)(void *context); /* which this tells before it happens, when nothing refuses it; NULL: nobody */
    void *context;
    const char *const *volumes; /* "claim=directory" */
    unsigned volume_count;
};

/* Returns when the API serves. Runs `loop` meanwhile. On failure the error quotes the last line of the child's log. A directory
 * that another control plane uses is left as it is (ERROR_UNAVAILABLE), and so is one that was to be forgotten and is not of
 * a control plane (ERROR_INVALID). */
int control_plane_start(struct event_loop *loop, const struct control_plane_options *options,
                        struct control_plane **ret_plane, struct error *error);
/* <state>/kubeconfig. */
const char *control_plane_kubeconfig(const struct control_plane *plane);
/* A child that has ended although nobody asked it to: what to say; NULL when all is well. */
const char *control_plane_trouble(const struct control_plane *plane);
/* SIGTERM for both, waits for them (they end their pods), frees. Runs `loop` meanwhile. */
void control_plane_end(struct control_plane *plane);

#endif
