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

/* Bytes that were read from one side (the network or gRPC) and are not yet written to the other. */
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
    CONNECTION_CONNECTING, /* dialled only */
    CONNECTION_SECURING,   /* TLS handshake */
    CONNECTION_GREETING,   /* the caller's hello and its answer */
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
    int64_t until_ns;            /* when the connection fails unless it is open by then; 0: never */
    bool peer_ended, grpc_ended; /* no more bytes will come from the peer, from gRPC */

    struct rpc_dialled *dialled;   /* NULL: accepted */
    struct rpc_listener *listener; /* NULL: dialled */
    union socket_address address;  /* of the other side, where it was accepted */

    struct crew_hello hello;                                          /* of the caller */
    unsigned char said[CREW_HELLO_BYTES], binding[TLS_BINDING_BYTES]; /* `said`: the hello as it is sent */
    unsigned char answer[CREW_HELLO_ANSWER_BYTES];
    size_t said_bytes, answer_bytes; /* how many bytes of `said` and `answer` are sent or received */
    struct flow *to_peer, *to_grpc;  /* NULL until the connection is open */
};

struct rpc_listener {
    struct rpc_listener *next;
    struct rpc_connections *all;
    int descriptor; /* -1: shut */
    struct watch watch;
    int64_t pause_until_ns; /* accept no connection before: there was no descriptor or memory for the last one */
    rpc_accepted *accepted;
    void *context;
};

struct rpc_connections {
    pthread_t thread;
    struct heartbeat heartbeat;
    pthread_mutex_t lock;
    int epoll;   /* the epoll set of all descriptors, `members` included */
    int members; /* an epoll set of the open connections alone, which are served before strangers */
    int bell;    /* an eventfd by which other threads wake this one */
    struct watch bell_watch;
    int spare; /* a descriptor that is closed for a moment when a connection must be accepted and no other is left */
    bool stopping;
    atomic_bool busy; /* bytes of open connections may be between the network and gRPC */
    struct connection *first, **end;
    unsigned stranger_count, strangers_max;
    struct rpc_listener *listeners;
};

/* rpc_connections.c */
void connections_add(struct rpc_connections *all, struct connection *connection);
void connections_watch(int descriptor, struct watch *watch, uint32_t events);

/* rpc_connection.c. Called when the connection's socket, or our end of gRPC's socket pair, is ready: move all bytes that can be moved without
 * waiting. */
void connection_on_link(void *owner, uint32_t events);
void connection_on_local(void *owner, uint32_t events);
/* Closes the connection. The reason `why` (may be NULL) becomes the result of rpc_dialled_result if this side dialled, and is logged if the
 * connection was a stranger's. */
void connection_end(struct connection *connection, const struct error *why);
/* Sets `error` to why connect(2) failed. Returns -1. */
int connection_connect_failed(int os_error, struct error *error);
bool connection_is_stranger(const struct connection *connection);

/* rpc_listener.c */
int rpc_listener_open(struct rpc_connections *all, const char *address, uint16_t port,
                      struct rpc_listener **ret_listener, uint16_t *ret_port, struct error *error);
void rpc_listener_close(struct rpc_listener *listener);
void rpc_listener_wait(struct rpc_listener *listener);
/* Closes the oldest stranger, to free its descriptor. Returns false if there is no stranger. */
bool rpc_listener_evict_oldest(struct rpc_connections *all);

#endif
