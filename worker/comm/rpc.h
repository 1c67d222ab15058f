/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends and receives messages between the worker's processes over gRPC: the crew's coordination, the control of
 * parameter servers, and the exchange between the peers of PeerToPeer. No other file includes gRPC.
 *
 * The only primitive is a stream: the client opens it on a named method, both sides send whole messages (bytes, at most
 * RPC_MESSAGE_MAX) in order, and both learn of its end exactly once. A question with one answer is a stream with one
 * message each way. Each stream has a connection of its own. If the connection closes, its stream ends at once; a peer
 * that does not answer gRPC's keepalives is noticed after twice RPC_KEEPALIVE_MS.
 *
 * An `rpc` owns one thread, on which all callbacks and the tick run, one at a time; they must not block. Functions for
 * streams may be called on that thread only.
 *
 * Before the first message, both sides prove that they belong to the same job, and the caller proves which of its pods
 * it is; everything is encrypted (rpc_connections.h). There is no protobuf, no service config and no name resolution:
 * addresses are numeric (resolve.h).
 */
#ifndef COXSWAIN_COMM_RPC_H
#define COXSWAIN_COMM_RPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/comm/introduction.h"

#define RPC_MESSAGE_MAX ((size_t)1 << 20)
#define RPC_KEEPALIVE_MS 5000

struct rpc;
struct rpc_server;
struct rpc_stream;

/* `tick` is called on the thread about every `tick_ms`, once rpc_start_ticks has allowed it; may be NULL. */
typedef void rpc_tick(void *context);
int rpc_new(rpc_tick *tick, void *context, int64_t tick_ms, struct rpc **ret_rpc, struct error *error);
/* When everything is there that the tick reads, for which the thread does not wait by itself. */
void rpc_start_ticks(struct rpc *rpc);
/* Ends all streams and servers; callbacks may still come until it returns, none after. Not from a callback. */
void rpc_stop(struct rpc *rpc);
/* Stops, if that has not been done, and releases. */
void rpc_free(struct rpc *rpc);

/* Calls `tick` soon, from any thread; nothing before rpc_start_ticks. */
void rpc_wake(struct rpc *rpc);
/* When last (clock_monotonic_ms) all that had come had been read and told: what has come since may lie unread. On the rpc's thread
 * only. */
int64_t rpc_read_until_ms(const struct rpc *rpc);

/* A part of a message. */
struct rpc_piece {
    const void *bytes;
    size_t length;
};
/* A message of more pieces than this is dropped with its stream. */
#define RPC_PIECES_MAX 1024

/* How a stream speaks to its owner. `closed` is the last call; `error` is NULL after an orderly end (the other side
 * finished), else says why (UNAVAILABLE, NOT_FOUND when nobody listens there, TIMEOUT, CANCELLED, UNSUPPORTED for an unknown method,
 * FORBIDDEN when one side could not prove that it belongs to the other's job). The stream is gone when it
 * returns. */
struct rpc_stream_events {
    void (*message)(void *context, struct rpc_stream *stream, const void *bytes, size_t length);
    void (*closed)(void *context, struct rpc_stream *stream, const struct error *error);
    /* Instead of `message`, for bulk data: the bytes where gRPC has put them, in order, without another copy. */
    void (*pieces)(void *context, struct rpc_stream *stream, const struct rpc_piece *pieces, unsigned count);
    /* When a message has gone out and at most one more waits: for what is too large to be queued whole. The other side's flow
     * control decides when. May be NULL. */
    void (*drained)(void *context, struct rpc_stream *stream);
};

/* A method that a server offers. `opened` is called for each new stream and fills what that stream is to call with its own
 * context; `name` is "/Service/Method". */
struct rpc_method {
    const char *name;
    void (*opened)(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                   void **ret_stream_context);
};

/* Listens on `address` (numeric, NULL or "": all interfaces), port 0: any free one. `methods` outlives the server, which ends with
 * rpc_free. */
int rpc_server_start(struct rpc *rpc, const char *address, uint16_t port, const struct rpc_method *methods,
                     unsigned count, void *context, struct rpc_server **ret_server, struct error *error);
uint16_t rpc_server_port(const struct rpc_server *server);

/* Opens a stream to a server. `lifetime_ms`: ERROR_TIMEOUT when the stream is older (0: none). Fails only for a malformed
 * address; a server that cannot be reached ends the stream with ERROR_UNAVAILABLE or ERROR_NOT_FOUND. On the rpc's thread only, as all that
 * follows. */
int rpc_stream_open(struct rpc *rpc, const char *address, uint16_t port, const char *method, int64_t lifetime_ms,
                    const struct rpc_stream_events *events, void *context, struct rpc_stream **ret_stream,
                    struct error *error);

/* Of a server's stream: the pod that has proven to be its caller; NULL where nothing is proven, since there is no key. */
const struct pod_identity *rpc_stream_caller(const struct rpc_stream *stream);

/* Queues a message (copied). Messages beyond RPC_MESSAGE_MAX, or sent after the end, are dropped; the stream's end tells. */
void rpc_stream_send(struct rpc_stream *stream, const void *bytes, size_t length);
/* The same for a copied head and a body that is not copied: it must not change before the other side has answered or the
 * stream is closed, and must stay readable until rpc_free. */
void rpc_stream_send_bulk(struct rpc_stream *stream, const void *head, size_t head_length, const void *body,
                          size_t body_length);
/* Ends it: a server finishes after what is queued has gone out, a client cancels. `closed` follows, from the loop. */
void rpc_stream_close(struct rpc_stream *stream);

#endif
