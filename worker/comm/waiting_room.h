/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the listening socket of a data port (endpoint.h), such that members of the crew get through even while other
 * callers ("strangers") connect as fast as they can.
 *
 * A thread accepts at all times. Each connection then waits until it has proved that it belongs to the crew. How it
 * proves that is up to the port's `hear`, which takes the connection over afterwards. A connection without this proof
 *   - waits at most WAITING_ROOM_PATIENCE_MS;
 *   - is one of at most WAITING_ROOM_MAX, or of a quarter of the descriptors that the process may open, if that is less;
 *     one address has at most half of these places;
 *   - is closed, the oldest first, when all places are taken (the oldest of the newcomer's address if that address has
 *     its half), or when no descriptor is left for accept(2).
 * Each connection that is refused is counted and logged (strangers.h).
 */
#ifndef COXSWAIN_COMM_WAITING_ROOM_H
#define COXSWAIN_COMM_WAITING_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/comm/strangers.h"

#define WAITING_ROOM_PATIENCE_MS 2000
/* Twice the largest crew and more, of which all may connect at once and from one address. */
#define WAITING_ROOM_MAX 512

struct waiting_room;

enum pending_verdict {
    PENDING_WAITS,   /* more must come */
    PENDING_TAKEN,   /* it belongs to the crew: the socket is the caller's from now on */
    PENDING_REFUSED, /* it does not; `error` says why. The room closes the socket */
};

/* A connection that has not proved that it belongs to the crew. */
struct pending_connection {
    int socket;   /* non-blocking */
    short events; /* what to wait for, for poll(2): POLLIN at first */
    void *state;  /* `state_bytes`, zeros at first */
};

struct waiting_room_options {
    const char *port_name; /* in messages: "data port" */
    enum stranger_port number;
    const char *pulse_name; /* pulse.h; not copied */
    const char *address;    /* numeric; NULL or "": all interfaces */
    uint16_t port;          /* 0, or one that is taken: any free one */
    size_t state_bytes;
    /* The next two run on the room's thread and must not block. `hear`: the connection is new, or ready for its `events`. `forget`
     * (may be NULL): releases what `state` owns, before the room closes the socket. */
    enum pending_verdict (*hear)(void *context, struct pending_connection *pending, struct error *error);
    void (*forget)(void *context, struct pending_connection *pending);
    void *context;
};

/* Listens. Connections wait in the kernel until waiting_room_start. Strings in `options` are copied. */
int waiting_room_open(const struct waiting_room_options *options, struct waiting_room **ret_room, struct error *error);
/* Starts the thread. Does nothing the second time. */
int waiting_room_start(struct waiting_room *room, struct error *error);
/* NULL is fine. */
void waiting_room_free(struct waiting_room *room);

uint16_t waiting_room_port(const struct waiting_room *room);
/* For how many ms no connection could be accepted: because the thread stands still, or because no descriptor is left. Below two seconds
 * when all is well (pulse.h). 0 before waiting_room_start. From any thread. */
int64_t waiting_room_stuck_ms(const struct waiting_room *room);

/* True when a connection waits to be accepted. accept(2) alone does not say so: when no descriptor is left it fails with EMFILE even
 * if nobody connects. */
bool listener_has_callers(int listener);

#endif
