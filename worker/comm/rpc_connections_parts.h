/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the internals of rpc_connections.h, for the files that carry gRPC's bytes over authenticated connections:
 * rpc_connections.c (the thread), rpc_connection.c (one connection) and rpc_listener.c (the listening sockets). Only
 * they include this header.
 *
 * Everything happens with the lock held, on the connections' thread; open connections are also served on the rpc's
 * thread (rpc_connections_carry). Only the connections' thread frees them.
 */
#ifndef COXSWAIN_COMM_RPC_CONNECTIONS_PARTS_H
#define COXSWAIN_COMM_RPC_CONNECTIONS_PARTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "worker/comm/heartbeat.h"
#include "worker/comm/link.h"
#include "worker/comm/rpc_connections.h"
#include "worker/comm/socket_address.h"

/* A descriptor that the thread waits for. */
struct watch {
    void (*ready)(void *owner, uint32_t events);
    void *owner;
    int *epoll;      /* the set that it belongs to */
    uint32_t events; /* 0: not in the set now */
};

/* What was read at one end and not yet written at the other. */
#define FLOW_BYTES ((size_t)32 * 1024)
struct flow {
    unsigned char bytes[FLOW_BYTES];
    size_t start, end;
};
static inline size_t flow_length(const struct flow *flow)
{
    return flow->end - flow->start;
}

/* Shared by a stream and its connection; counts both. */
struct rpc_dialled {
    pthread_mutex_t lock;
    unsigned references;
    struct error error;
};

enum connection_state {
    CONNECTION_CONNECTING,  /* dialled only */
    CONNECTION_SECURING,    /* TLS handshake */
    CONNECTION_INTRODUCING, /* the caller's introduction and its answer */
    CONNECTION_OPEN,
    CONNECTION_GONE /* freed once the events at hand are handled */
};

struct connection {
    struct connection *next;
    struct rpc_connections *all;
    enum connection_state state;
    struct link
        link;  /* its socket and TLS session; bytes do not go through link_read, which counts them as bulk data */
    int local; /* our end of gRPC's socket pair; -1: none yet */
    struct watch link_watch, local_watch;
    int64_t until_ns;            /* when it is given up; 0: never */
    bool peer_ended, grpc_ended; /* no more bytes will come from there */

    struct rpc_dialled *dialled;   /* NULL: accepted */
    struct rpc_listener *listener; /* NULL: dialled */
    union socket_address address;  /* of the other side, where it was accepted */

    struct introduction introduction; /* of the caller */
    unsigned char said[INTRODUCTION_BYTES], binding[TLS_BINDING_BYTES];
    unsigned char answer[INTRODUCTION_ANSWER_BYTES];
    size_t said_bytes, answer_bytes;

    struct flow *to_peer, *to_grpc; /* NULL until it is open */
};

struct rpc_listener {
    struct rpc_listener *next;
    struct rpc_connections *all;
    int descriptor; /* -1: shut */
    struct watch watch;
    int64_t pause_until_ns; /* there was no descriptor or memory for who is at it */
    rpc_accepted *accepted;
    void *context;
};

struct rpc_connections {
    pthread_t thread;
    struct heartbeat heartbeat;
    pthread_mutex_t lock;
    int epoll;   /* of everything, `members` included */
    int members; /* an epoll set of open connections alone: they go first, and strangers do not make it look busy */
    int bell;    /* an eventfd: another thread changed something */
    struct watch bell_watch;
    int spare; /* given up for the moment in which a connection must be accepted without any descriptor */
    bool stopping;
    atomic_bool busy; /* bytes of open connections may be between the network and gRPC */
    struct connection *first, **end;
    unsigned stranger_count, strangers_max;
    struct rpc_listener *listeners;
};

/* rpc_connections.c */
void connections_add(struct rpc_connections *all, struct connection *connection);
void connections_watch(int descriptor, struct watch *watch, uint32_t events);

/* rpc_connection.c: do all that can be done now. */
void connection_on_link(void *owner, uint32_t events);
void connection_on_local(void *owner, uint32_t events);
/* Closes it. The reason, unless it is NULL, goes to whoever dialled, or to the log when it was a stranger. */
void connection_end(struct connection *connection, const struct error *why);
/* Why a socket could not be connected. Returns -1. */
int connection_connect_failed(int os_error, struct error *error);
bool connection_is_stranger(const struct connection *connection);

/* rpc_listener.c */
int rpc_listener_open(struct rpc_connections *all, const char *address, uint16_t port,
                      struct rpc_listener **ret_listener, uint16_t *ret_port, struct error *error);
void rpc_listener_close(struct rpc_listener *listener);
void rpc_listener_wait(struct rpc_listener *listener);
/* Frees the descriptor of a stranger; false when there is none. */
bool rpc_listener_evict_oldest(struct rpc_connections *all);

#endif
