/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the internals of bulk connections (bulk_connection.h), for the two files that implement them:
 * bulk_connection.c runs the thread that moves the bytes of large tensors, and bulk_connection_opening.c opens a
 * connection from either side. Only they include this header.
 */
#ifndef COXSWAIN_COMM_BULK_CONNECTION_PARTS_H
#define COXSWAIN_COMM_BULK_CONNECTION_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "worker/comm/bulk_connection.h"
#include "worker/comm/endpoint.h"
#include "worker/comm/handshake.h"

/* The thread's polling interval while nothing happens. */
#define CONNECTIONS_LOOK_MS 100

/* WAITING: until the other side dials; DIALLING: this side dials. */
enum connection_phase { BULK_WAITING, BULK_DIALLING, BULK_OPEN, BULK_CLOSED };
/* A load is one array of bytes that is being sent (OUT) or received (IN). */
enum load_kind { LOAD_NONE, LOAD_OUT, LOAD_IN };

struct bulk_connection {
    struct bulk_connection *next;
    struct bulk_connections *connections;
    uint64_t token;
    atomic_int phase, load;    /* the owner sets `load` to begin one; all other changes are the thread's */
    atomic_ullong moved;       /* bytes sent and received so far */
    atomic_bool poked;         /* set by the owner: `give` has more bytes */
    atomic_bool dropped, left; /* set by the owner: the load must end; the thread may release the connection */

    pthread_mutex_t lock; /* guards what follows */
    struct link link;
    int64_t until_ns;           /* when to give up dialling */
    struct handshake handshake; /* of dialling */

    bool is_new;                         /* the thread has not begun to move the load yet */
    bool waits;                          /* `give` has returned BULK_CONNECTION_LATER */
    uint64_t number;                     /* number of loads before this one, in both directions */
    unsigned char head[LOAD_HEAD_BYTES]; /* of the load under way (frame.h) */
    size_t head_done, length, done;      /* bytes of the head that are moved; bytes of the load in all, and moved */
    unsigned char *bytes;
    bulk_connection_give *give;
    void *context;
};

struct bulk_connections {
    struct bulk_connections_options options;
    char *job_uid;
    struct endpoint *endpoint;
    int bell; /* an eventfd that wakes the thread */
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock; /* guards what follows; taken before a connection's lock */
    struct bulk_connection *first;
    bool stopping;
};

/* Creates a connection that is not in the list yet; connection_enter adds it. */
struct bulk_connection *connection_new(struct bulk_connections *connections, uint64_t token);
void connection_enter(struct bulk_connection *connection);

/* For the thread, with the connection's lock held. */
void connection_set_phase(struct bulk_connection *connection, enum connection_phase phase);
/* Continues to open a dialled connection. `ready`: poll(2) reported its socket. */
void connection_open_further(struct bulk_connection *connection, bool ready);
/* Gives the connections that have arrived to the connections that expect them, and refuses the others. */
void connections_take_arrivals(struct bulk_connections *connections);

#endif
