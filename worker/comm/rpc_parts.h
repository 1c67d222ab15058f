/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the internals of rpc.h, for the files that together wrap gRPC core: rpc.c (the thread and its completion
 * queue), rpc_stream.c (streams), rpc_server.c (servers), rpc_settings.c (arguments of channels and servers) and
 * rpc_log.c (gRPC's messages in our log). Only they include this header.
 */
#ifndef COXSWAIN_COMM_RPC_PARTS_H
#define COXSWAIN_COMM_RPC_PARTS_H

#include <grpc/grpc.h>
#include <pthread.h>
#include <stdatomic.h>

#include "worker/comm/heartbeat.h"
#include "worker/comm/rpc.h"
#include "worker/comm/rpc_connections.h"

/* The tag of an operation in gRPC's completion queue: `done` is called when the operation has completed. */
struct completion {
    void (*done)(void *owner, bool success);
    void *owner;
};

struct outgoing {
    struct outgoing *next;
    grpc_byte_buffer *payload;
};

struct rpc_stream {
    struct rpc *rpc;
    struct rpc_stream *previous, *next; /* in the rpc's list */
    grpc_call *call;
    grpc_channel *channel;       /* a client's own; NULL in a server */
    struct rpc_dialled *dialled; /* a client's: why its connection could not be established; NULL in a server */
    struct pod_identity caller;  /* server: who opened it, if it `has_caller` */
    bool has_caller;
    struct rpc_stream_events events;
    void *context;
    bool is_server;
    bool ended;       /* the call has ended, although some of its operations may not have completed */
    bool close_asked; /* server: send the status once the queue is empty */
    bool status_sent;
    unsigned outstanding; /* operations that have not completed */

    struct completion opened, received, sent, finished, status_flushed;
    grpc_byte_buffer *incoming;
    struct outgoing *queue, **queue_end;
    bool sending;

    grpc_metadata_array initial_metadata, trailing_metadata;
    grpc_status_code status;
    grpc_slice details;
    int cancelled;
};

struct rpc_server {
    struct rpc *rpc;
    struct rpc_server *next;
    grpc_server *server;
    uint16_t port;
    const struct rpc_method *methods;
    unsigned count;
    void *context;
    struct completion requested, stopped;
    grpc_call *call;
    grpc_call_details details;
    grpc_metadata_array metadata;
};

struct rpc {
    grpc_completion_queue *queue;
    struct rpc_connections *connections;
    pthread_t thread;
    bool has_thread;
    struct heartbeat heartbeat;
    rpc_tick *tick; /* called on the thread about every tick_ms, and soon after rpc_wake; may be NULL */
    void *tick_context;
    int64_t tick_ms;
    int64_t read_until_ms;      /* all that arrived before this time (clock_monotonic_ms) has been read and handled */
    bool has_written;           /* gRPC was given data that rpc_connections_carry has not moved to the sockets yet */
    atomic_bool ticks;          /* rpc_start_ticks was called */
    grpc_channel *wake_channel; /* never connected; rpc_wake starts an empty batch on its call to wake the thread */
    grpc_call *wake_call;
    atomic_bool wake_pending;
    atomic_bool stopping;
    bool servers_stopped;
    unsigned servers_running;
    pthread_mutex_t lock; /* of `servers`, which other threads add to */
    struct rpc_server *servers;
    struct rpc_stream *streams;
};

/* rpc_settings.c */
#define CHANNEL_ARGUMENTS_MAX 12
unsigned rpc_client_arguments(grpc_arg arguments[CHANNEL_ARGUMENTS_MAX]);
unsigned rpc_server_arguments(grpc_arg arguments[CHANNEL_ARGUMENTS_MAX]);

/* rpc_log.c. Copies a text, with everything but printable ASCII escaped, and with "…" at the end if it was too long. */
#define RPC_LOG_MAX 512
void rpc_log_escape(const char *text, char ret_escaped[RPC_LOG_MAX]);
/* Makes gRPC write its messages to our log. */
void rpc_log_set_up(void);

/* rpc_stream.c. Creates the stream of an incoming or outgoing call. Its `outstanding` counts the operations begun with rpc_stream_batch. */
struct rpc_stream *rpc_stream_new(struct rpc *rpc, grpc_call *call, bool is_server);
void rpc_stream_batch(struct rpc_stream *stream, const grpc_op *operations, size_t count, struct completion *tag);
void rpc_stream_receive(struct rpc_stream *stream);

/* The name of a call's metadata entry with the token of the connection that carries the call. gRPC allows raw bytes in headers whose names end
 * in -bin. */
#define TOKEN_HEADER "coxswain-connection-bin"

/* rpc_server.c */
void rpc_server_stop(struct rpc_server *server);

#endif
