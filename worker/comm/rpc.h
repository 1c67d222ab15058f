/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends and receives messages between the worker's processes over gRPC: the crew's coordination, the control of
 * parameter servers, and the exchange between the peers of PeerToPeer. No other file includes gRPC.
 *
 * The only primitive is a stream: the client opens it on a named method, both sides send whole messages (bytes, at most
 * RPC_MESSAGE_MAX) in order, and both learn of its end exactly once. A request with one answer is a stream with one
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
#include "worker/comm/crew_hello.h"

#define RPC_MESSAGE_MAX ((size_t)1 << 20)
#define RPC_KEEPALIVE_MS 5000

struct rpc;
struct rpc_server;
struct rpc_stream;

/* A callback that the thread calls about every `tick_ms` milliseconds, from rpc_start_ticks on. */
typedef void rpc_tick(void *context);
/* Starts the thread. `tick` may be NULL. */
int rpc_new(rpc_tick *tick, void *context, int64_t tick_ms, struct rpc **ret_rpc, struct error *error);
/* Allows the thread to call `tick`. The owner calls it once everything that its tick reads is set up. */
void rpc_start_ticks(struct rpc *rpc);

/* Ends all streams and servers. Callbacks may still run until this function returns, and none runs afterwards. Must not be called from a
 * callback. */
void rpc_stop(struct rpc *rpc);

/* Calls rpc_stop, unless the owner has, and frees the rpc. */
void rpc_free(struct rpc *rpc);

/* Makes the thread call `tick` soon. Does nothing before rpc_start_ticks. May be called from any thread. */
void rpc_wake(struct rpc *rpc);

/* Returns a time (clock_monotonic_ms): everything that arrived from the network before it has been read and passed to `message`; later data
 * may still be unread. A caller that measures a peer's silence must not count time after it. May be called on the rpc's thread only. */
int64_t rpc_read_until_ms(const struct rpc *rpc);

/* A part of a message. */
struct rpc_piece {
    const void *bytes;
    size_t length;
};
/* A message with as many pieces as this, or more, is dropped, and its stream ends. */
#define RPC_PIECES_MAX 1024
/* The callbacks of a stream. `closed` is the last one; the stream is freed when it returns. Its `error` is NULL after an orderly end (the
 * other side finished), else the reason: UNAVAILABLE, NOT_FOUND if no process listens at the address, TIMEOUT, CANCELLED, UNSUPPORTED for an
 * unknown method, FORBIDDEN if one side could not prove that it belongs to the other's job. */
struct rpc_stream_events {
    void (*message)(void *context, struct rpc_stream *stream, const void *bytes, size_t length);
    void (*closed)(void *context, struct rpc_stream *stream, const struct error *error);
    /* If it is set, called instead of `message`, for bulk data: the message in pieces, in order, in gRPC's own memory, which saves a copy.
     * The pieces are valid until it returns. */
    void (*pieces)(void *context, struct rpc_stream *stream, const struct rpc_piece *pieces, unsigned count);
    /* Called when a message has been sent and at most one more is queued, so that a sender of much data can queue it message by message. The
     * other side's flow control decides when that is. May be NULL. */
    void (*drained)(void *context, struct rpc_stream *stream);
};

/* A method that a server offers; `name` is "/Service/Method". `opened` is called for each new stream, and sets the stream's callbacks and the
 * context with which they are called. */
struct rpc_method {
    const char *name;
    void (*opened)(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                   void **ret_stream_context);
};

/* Starts a server on `address` (numeric; NULL or "": all interfaces) and `port` (0: any free one). It ends with rpc_stop or rpc_free;
 * `methods` must stay valid until then. */
int rpc_server_start(struct rpc *rpc, const char *address, uint16_t port, const struct rpc_method *methods,
                     unsigned count, void *context, struct rpc_server **ret_server, struct error *error);
uint16_t rpc_server_port(const struct rpc_server *server);

/* Opens a stream to a server. A stream that is still open after `lifetime_ms` ends with ERROR_TIMEOUT (0: no limit). Fails only for a
 * malformed address; if the server cannot be reached, the stream ends with ERROR_UNAVAILABLE or ERROR_NOT_FOUND. This function and those
 * below may be called on the rpc's thread only. */
int rpc_stream_open(struct rpc *rpc, const char *address, uint16_t port, const char *method, int64_t lifetime_ms,
                    const struct rpc_stream_events *events, void *context, struct rpc_stream **ret_stream,
                    struct error *error);

/* For a stream that a server has accepted: returns the pod that opened it, as that pod has proved; NULL if the job has no key, so that nothing
 * is proved. The result lives as long as the stream. */
const struct pod_identity *rpc_stream_caller(const struct rpc_stream *stream);

/* Queues a copy of the message. Messages longer than RPC_MESSAGE_MAX are dropped, and so are those sent after the stream has ended. */
void rpc_stream_send(struct rpc_stream *stream, const void *bytes, size_t length);

/* Queues a message that consists of `head`, which is copied, and `body`, which is not: its bytes must not change before the other side has
 * answered or the stream is closed, and must stay readable until rpc_free. */
void rpc_stream_send_bulk(struct rpc_stream *stream, const void *head, size_t head_length, const void *body,
                          size_t body_length);
/* Ends the stream. A server ends it after all queued messages are sent; a client cancels it at once. `closed` is called later, by the thread. */
void rpc_stream_close(struct rpc_stream *stream);

#endif
