/* SPDX-License-Identifier: Apache-2.0
 *
 * A small HTTP server; the only wrapper around libmicrohttpd. It runs either in a thread of its own (the worker's /status and /metrics)
 * or on an event loop (the operator, the embedded control plane). The handler is called once a request is complete, answers it at once
 * or later, or opens a stream.
 */
#ifndef COXSWAIN_COMMON_HTTP_SERVER_H
#define COXSWAIN_COMMON_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct event_loop;
struct http_server;
struct http_exchange; /* one request and its answer */
struct http_stream;   /* an answer that stays open: a watch, logs -f */

/* Handles a request: calls http_exchange_respond, _stream or _defer before it returns. Runs on the loop or on the server's thread. */
typedef void http_handler(void *context, struct http_exchange *exchange);

struct http_server_options {
    const char *address;      /* "127.0.0.1", "0.0.0.0", "::" */
    uint16_t port;            /* 0: any free one */
    bool exclusive;           /* fails if another server has the port; else the two share its connections */
    const char *tls_cert_pem; /* with tls_key_pem: HTTPS; both NULL: plain HTTP */
    const char *tls_key_pem;
    size_t max_body; /* larger requests get 413; 0: 3 MiB */
    /* Beyond this number, the server closes the oldest connection without a complete request, else the one that has been idle longest.
     * 0: 1024. Lowered if the process may open too few descriptors. */
    unsigned max_connections;
    /* Closes a connection on which nothing was sent or received for this long; for at most 10 s before its first request. 0: 120. */
    unsigned idle_seconds;
    http_handler *handler;
    void *context;
};

/* Starts a server in a thread of its own. */
int http_server_start(const struct http_server_options *options, struct http_server **ret_server, struct error *error);
/* Starts a server on `loop`. It is in a file of its own, http_server_loop.c, so that the worker, which uses no loop, links no libcurl. */
int http_server_start_on_loop(const struct http_server_options *options, struct event_loop *loop,
                              struct http_server **ret_server, struct error *error);
/* Ends open streams and deferred exchanges (their `closed` is called), then stops the server. */
void http_server_free(struct http_server *server);
uint16_t http_server_port(const struct http_server *server);

/* The request. Strings are valid until the exchange is answered. The path is percent-decoded and without its query. */
const char *http_exchange_method(const struct http_exchange *exchange);
const char *http_exchange_path(const struct http_exchange *exchange);
/* Returns a query parameter's value: NULL if it is absent, "" if it has no value. */
const char *http_exchange_query(const struct http_exchange *exchange, const char *name);
const char *http_exchange_header(const struct http_exchange *exchange, const char *name);
const char *http_exchange_body(const struct http_exchange *exchange, size_t *ret_length);

/* Adds a header to the answer; call it before http_exchange_respond or _stream. Copies its arguments. */
void http_exchange_set_header(struct http_exchange *exchange, const char *name, const char *value);
/* Answers the request; the body is copied. */
void http_exchange_respond(struct http_exchange *exchange, int status, const char *content_type, const void *body,
                           size_t length);

/* Lets the handler return without an answer. Exactly one http_exchange_respond must follow, from the loop, unless the connection ends
 * first: then `closed` is called and the exchange may not be used any more. Only for servers on an event loop. */
typedef void http_closed(void *context);
void http_exchange_defer(struct http_exchange *exchange, http_closed *closed, void *context);

/* Begins a chunked answer. http_stream_write queues bytes; if more than `max_pending` would wait to be sent, it disconnects the client
 * and returns false. `closed` is called exactly once: when the client is gone, or when everything is sent after http_stream_close.
 * Only for servers on an event loop. */
struct http_stream *http_exchange_stream(struct http_exchange *exchange, int status, const char *content_type,
                                         size_t max_pending, http_closed *closed, void *context);
bool http_stream_write(struct http_stream *stream, const void *bytes, size_t length);
/* Reference-counted bytes, stored once although several streams send them. */
struct http_bytes;
struct http_bytes *http_bytes_new(const void *bytes, size_t length);
void http_bytes_release(struct http_bytes *bytes); /* drops the caller's reference; NULL is allowed */
/* Like http_stream_write; the stream keeps a reference to `bytes` until it has sent them. */
bool http_stream_write_shared(struct http_stream *stream, struct http_bytes *bytes);
/* Ends the answer once all queued bytes are sent. */
void http_stream_close(struct http_stream *stream);

#endif
