/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the listening socket of a data port (endpoint.h), such that members of the crew get through even while other
 * callers ("strangers") connect as fast as they can.
 *
 * A thread accepts at all times. Each connection then waits until it has proved that it belongs to the crew. How it
 * proves that is up to the port's `authenticate`, which takes the connection over afterwards. A connection without this proof
 *   - waits at most CREW_LISTENER_TIMEOUT_MS;
 *   - is one of at most CREW_LISTENER_PENDING_MAX, or of a quarter of the descriptors that the process may open, if that is less;
 *     one address has at most half of these places;
 *   - is closed, the oldest first, when all places are taken (the oldest of the newcomer's address if that address has
 *     its half), or when no descriptor is left for accept(2).
 * Each connection that is refused is counted and logged (strangers.h).
 */
#ifndef COXSWAIN_COMM_CREW_LISTENER_H
#define COXSWAIN_COMM_CREW_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/comm/strangers.h"

#define CREW_LISTENER_TIMEOUT_MS 2000
/* Twice the largest crew and more, of which all may connect at once and from one address. */
#define CREW_LISTENER_PENDING_MAX 512

struct crew_listener;

enum pending_verdict {
    PENDING_WAITS,   /* the proof is not complete: call again when the socket is ready */
    PENDING_TAKEN,   /* the peer belongs to the crew: `authenticate` has taken the socket over */
    PENDING_REFUSED, /* the peer does not belong to the crew; `error` says why. The listener closes the socket */
};

/* A connection that has not proved that it belongs to the crew. */
struct pending_connection {
    int socket;   /* non-blocking */
    short events; /* what to wait for, for poll(2): POLLIN at first */
    void *state;  /* memory for `authenticate`, of options.state_bytes bytes, which are zero at first */
};

struct crew_listener_options {
    const char *port_name; /* in messages: "data port" */
    enum stranger_port number;
    const char *heartbeat_name; /* heartbeat.h; not copied */
    const char *address;        /* numeric; NULL or "": all interfaces */
    uint16_t port;              /* 0, or one that is taken: any free one */
    size_t state_bytes;
    /* The next two run on the listener's thread and must not block. `authenticate`: the connection is new, or ready for its `events`. `forget`
     * (may be NULL): releases what `state` owns, before the listener closes the socket. */
    enum pending_verdict (*authenticate)(void *context, struct pending_connection *pending, struct error *error);
    void (*forget)(void *context, struct pending_connection *pending);
    void *context;
};

/* Opens the listening socket. Connections wait in the kernel until crew_listener_start. `options` are read during the
 * call, except that heartbeat_name and `context` must outlive the listener. */
int crew_listener_open(const struct crew_listener_options *options, struct crew_listener **ret_listener,
                       struct error *error);
/* Starts the thread. Does nothing the second time. */
int crew_listener_start(struct crew_listener *listener, struct error *error);
/* Ends the thread, and closes the listening socket and all connections that are not authenticated. Does nothing for NULL. */
void crew_listener_free(struct crew_listener *listener);

uint16_t crew_listener_port(const struct crew_listener *listener);
/* Returns for how many milliseconds no connection could be accepted, because the thread is stuck (heartbeat.h) or no file descriptor is
 * left. Less than 2000 in normal operation; 0 before crew_listener_start. May be called from any thread. */
int64_t crew_listener_stuck_ms(const struct crew_listener *listener);

/* Returns whether a connection waits to be accepted. accept(2) alone does not show it: when no file descriptor is left, it fails with EMFILE
 * even if no connection waits. */
bool listener_has_callers(int listener);

#endif
