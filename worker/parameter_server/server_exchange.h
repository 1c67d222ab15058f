/* SPDX-License-Identifier: Apache-2.0
 *
 * Serves the workers of a parameter server (server.h): receives the updates that they push, applies them to the
 * variables, acknowledges them, and sends values. Values and updates travel in memory that is shared with a worker on
 * the same machine, on a bulk connection, or on the gRPC stream itself.
 *
 * All functions are for the thread of the server's rpc, except _new and _free. A worker that has connected waits until
 * the server admits it.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_SERVER_EXCHANGE_H
#define COXSWAIN_PARAMETER_SERVER_SERVER_EXCHANGE_H

#include "worker/comm/bulk_connection.h"
#include "worker/comm/rpc.h"
#include "worker/parameter_server/message.h"
#include "worker/parameter_server/server.h"

struct server_exchange;

/* The pointers are borrowed, and must stay valid until the last stream is closed. */
struct server_exchange_options {
    const char *job_uid;
    struct generation generation; /* the server's */
    uint32_t digest;              /* parameter_layout_digest */
    uint64_t nonce;               /* the server's, which tells it from its predecessors */
    struct variables *variables;
    struct bulk_connections *connections; /* NULL: the values are too small */
    /* Returns whether a worker's first message is meant for this server, which may still take part in the crew. If not,
     * it has closed the stream or ended the server. */
    bool (*accepts)(struct ps_server *server, struct rpc_stream *stream, const struct ps_message *message);
    /* Called when a ticket's update was applied, before the worker learns of it. */
    void (*applied)(struct ps_server *server, int64_t ticket);
    /* Called when an update could not be applied; the values cannot be used any more. */
    void (*failed)(struct ps_server *server, const struct error *error);
    struct ps_server *server;
};

struct server_exchange *server_exchange_new(const struct server_exchange_options *options);
/* All streams must be closed. Frees memory that gRPC may read until rpc_free; NULL is allowed. */
void server_exchange_free(struct server_exchange *exchange);

/* Accepts the stream of a worker: rpc_method.opened of PS_METHOD_EXCHANGE. */
void server_exchange_open(struct server_exchange *exchange, struct rpc_stream *stream,
                          struct rpc_stream_events *ret_events, void **ret_context);
/* Processes what has arrived on bulk connections. */
void server_exchange_tick(struct server_exchange *exchange);

/* Admits the workers that wait and those that connect from now on. */
void server_exchange_admit(struct server_exchange *exchange);
/* Lets workers that connect from now on wait. */
void server_exchange_hold(struct server_exchange *exchange);
/* Disconnects all workers, and lets those that connect from now on wait. */
void server_exchange_close(struct server_exchange *exchange);
/* Disconnects all workers, and never admits one again. */
void server_exchange_freeze(struct server_exchange *exchange);
bool server_exchange_is_frozen(const struct server_exchange *exchange);

struct ps_server_counts server_exchange_counts(const struct server_exchange *exchange);

#endif
