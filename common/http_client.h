/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends HTTP requests with libcurl from an event loop (event_loop.h), and delivers their answers to callbacks.
 *
 * A client holds what its requests share: connection pool, TLS trust, client certificate. Requests run side by side, and name resolution
 * does not block the loop. All calls are made on the loop's thread. Each request ends in exactly one call of its `done` callback.
 */
#ifndef COXSWAIN_COMMON_HTTP_CLIENT_H
#define COXSWAIN_COMMON_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"
#include "common/event_loop.h"

struct http_client;
struct http_transfer;

/* Strings are copied. The certificates of TLS servers are verified with `ca_pem`, or with the system's CA certificates if it is NULL. */
struct http_client_options {
    const char *ca_pem;          /* certificates in PEM, or NULL */
    const char *client_cert_pem; /* with client_key_pem: mutual TLS */
    const char *client_key_pem;
    const char *tls_server_name; /* the name that the server's certificate must have; NULL: the URL's host */
    /* "http://…", "https://…" or "socks5://…"; the proxy resolves host names. NULL: as the environment variables say (http_proxy, …). */
    const char *proxy;
    bool insecure_skip_tls_verify; /* only ever from a kubeconfig that says so; the caller logs it */
    const char *user_agent;
    int max_connections; /* 0: 16 */
    bool http2;          /* multiplex over one connection where the server can */
};

int http_client_new(struct event_loop *loop, const struct http_client_options *options, struct http_client **ret_client,
                    struct error *error);
/* Sets the CA certificates (PEM, copied) for transfers that are started later. NULL: the system's
 * store. */
void http_client_set_trust(struct http_client *client, const char *ca_pem);
/* Sets the client certificate and its key (PEM, copied) for transfers that are started later. NULL
 * for both: no client certificate. */
void http_client_set_identity(struct http_client *client, const char *client_cert_pem, const char *client_key_pem);
/* Cancels the client's transfers and frees it. */
void http_client_free(struct http_client *client);

/* The outcome of a request, passed to its `done` callback. An answer of any HTTP status is a success. If no answer came, `status` is 0 and
 * `error` says why: ERROR_UNAVAILABLE, ERROR_TIMEOUT, ERROR_TOO_LARGE, ERROR_CANCELLED; ERROR_FORBIDDEN if the server's certificate is not
 * trusted or a token would be sent over plain HTTP; ERROR_INVALID for a wrong URL, certificate or key; the error of `on_data` if it has
 * aborted the transfer. `body` is empty if `on_data` has received it. */
struct http_response {
    int status;
    int64_t retry_after_ms; /* from Retry-After, -1 when absent */
    const char *content_type;
    const char *body; /* NUL-terminated; valid during the call */
    size_t body_length;
    const struct error *error; /* NULL when an answer came */
    bool refused;              /* with `error`: the server refused the connection */
};
typedef void http_done(void *context, const struct http_response *response);
/* Receives a part of the body of an answer with status 2xx; bodies of other answers are passed to `done` as a whole. Returns 0 to go on, or
 * -1 with `error` filled to abort the transfer. */
typedef int http_data(void *context, const char *bytes, size_t length, struct error *error);
/* Progress in bytes; `total` is 0 while unknown. */
typedef void http_progress(void *context, int64_t received, int64_t total);

struct http_request {
    const char *method; /* "GET", … */
    const char *url;
    const char *const *headers; /* "Name: value", NULL-terminated list, or NULL */
    const char *body;           /* copied; NULL: none */
    size_t body_length;
    const char *content_type;
    /* Sent as "Authorization: Bearer …". Not sent over plain HTTP, unless directly to the loopback interface, nor to the target of a
     * redirect. */
    const char *bearer_token;
    size_t max_body;         /* most bytes of a body that is passed to `done`; 0: 16 MiB */
    int64_t timeout_ms;      /* of the whole transfer; 0: none */
    int64_t idle_timeout_ms; /* fails the transfer if no byte arrives for this long; 0: none */
    bool follow_redirects;   /* at most 5, same or stronger scheme; false for everything but downloads */
    /* Asks for the bytes from this offset on. If the server sends others, the request fails with ERROR_CONFLICT; status 416 means that
     * there are no bytes from there on. */
    int64_t resume_from;
    http_data *on_data;         /* NULL: collect */
    http_progress *on_progress; /* NULL: none */
    http_done *done;
    void *context;
};

/* Starts a request and copies all its strings. `done` is called by the loop later, never before this function returns. */
struct http_transfer *http_client_start(struct http_client *client, const struct http_request *request);
/* Cancels a request: its `done` is called with ERROR_CANCELLED before this function returns. Do not use a transfer after its `done` was
 * called. */
void http_transfer_cancel(struct http_transfer *transfer);

#endif
