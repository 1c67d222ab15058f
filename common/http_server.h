/* SPDX-License-Identifier: Apache-2.0
 *
 * A small HTTP server: the one wrapper around libmicrohttpd. Either it runs in a
 * thread of its own (the worker's /status and /metrics) or its descriptor is
 * watched by an event loop (the operator, the embedded control plane). The
 * handler sees whole requests, with a ceiling on the body, and either answers at
 * once, answers later, or opens a stream.
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
struct http_stream;   /* an answer without end: a watch, logs -f */

/* Must end in http_exchange_respond, _stream or _defer. Runs on the loop or on the server's thread. */
typedef void http_handler(void *context, struct http_exchange *exchange);

struct http_server_options {
    const char *address;      /* "127.0.0.1", "0.0.0.0", "::" */
    uint16_t port;            /* 0: any free one */
    const char *tls_cert_pem; /* both or none */
    const char *tls_key_pem;
    size_t max_body; /* larger requests get 413; 0: 3 MiB */
    unsigned
        max_connections; /* beyond it, the oldest that waits for a request is closed; 0: 1024. At most the process's descriptors allow */
    unsigned
        idle_seconds; /* how long a connection on which nothing comes or goes is kept, 10 s before the first request; 0: 120 */
    http_handler *handler;
    void *context;
};

/* Runs in a thread of its own. */
int http_server_start(const struct http_server_options *options, struct http_server **ret_server, struct error *error);
/* Runs on `loop`. In a file of its own (http_server_loop.c), so that a program without an event loop links no libcurl. */
int http_server_start_on_loop(const struct http_server_options *options, struct event_loop *loop,
                              struct http_server **ret_server, struct error *error);
/* Ends streams, then stops. */
void http_server_free(struct http_server *server);
uint16_t http_server_port(const struct http_server *server);

/* The request; strings are valid until the exchange is answered. Path is percent-decoded and has no query. */
const char *http_exchange_method(const struct http_exchange *exchange);
const char *http_exchange_path(const struct http_exchange *exchange);
const char *http_exchange_query(const struct http_exchange *exchange,
                                const char *name); /* NULL: absent; "": no value */
const char *http_exchange_header(const struct http_exchange *exchange, const char *name);
const char *http_exchange_body(const struct http_exchange *exchange, size_t *ret_length);

/* The answer. Extra headers first, then one respond; bytes are copied. */
void http_exchange_set_header(struct http_exchange *exchange, const char *name, const char *value);
void http_exchange_respond(struct http_exchange *exchange, int status, const char *content_type, const void *body,
                           size_t length);

/* Answer later, from the loop: the handler may return, and exactly one http_exchange_respond must follow.
 * `closed` is called when the client went away first; the exchange is dead then. */
typedef void http_closed(void *context);
void http_exchange_defer(struct http_exchange *exchange, http_closed *closed, void *context);

/* A chunked answer that stays open. Writes are queued up to `max_pending` bytes; a reader that lets more pile up is
 * disconnected (http_stream_write returns false and `closed` is called). `closed` is called exactly once, also after
 * http_stream_close has flushed. Only for servers on an event loop. */
struct http_stream *http_exchange_stream(struct http_exchange *exchange, int status, const char *content_type,
                                         size_t max_pending, http_closed *closed, void *context);
bool http_stream_write(struct http_stream *stream, const void *bytes, size_t length);
/* The same for bytes that many streams send: they are stored once. A stream keeps a reference until they are sent. */
struct http_bytes;
struct http_bytes *http_bytes_new(const void *bytes, size_t length);
void http_bytes_release(struct http_bytes *bytes); /* gives up the caller's reference; NULL is fine */
bool http_stream_write_shared(struct http_stream *stream, struct http_bytes *bytes);
void http_stream_close(struct http_stream *stream);

#endif
