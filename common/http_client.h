/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends HTTP requests from an event loop (event_loop.h) and delivers their answers to callbacks; the only wrapper around libcurl. The
 * operator and `cox` use it for the Kubernetes API, for workers' status and for downloads; the embedded control plane uses it for probes.
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

/* Strings are copied. TLS peers are always verified; trust is `ca_pem` when given, else the
 * system's store. */
struct http_client_options {
    const char *ca_pem;          /* certificates in PEM, or NULL */
    const char *client_cert_pem; /* with client_key_pem: mutual TLS */
    const char *client_key_pem;
    const char *tls_server_name; /* verified instead of the URL's host, or NULL */
    /* "http://…", "https://…" or "socks5://…", where names are resolved; NULL: as the environment has it */
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

/* Called once, at the end. On failure to get an answer `status` is 0 and `error` says why
 * (ERROR_UNAVAILABLE, ERROR_TIMEOUT, ERROR_TOO_LARGE, ERROR_CANCELLED; ERROR_FORBIDDEN when the
 * peer's certificate is not trusted or a token would go over plain HTTP; ERROR_INVALID for a wrong
 * URL, certificate or key); an answer of any status is no error. `body` is empty when `on_data`
 * took it. */
struct http_response {
    int status;
    int64_t retry_after_ms; /* from Retry-After, -1 when absent */
    const char *content_type;
    const char *body; /* NUL-terminated; valid during the call */
    size_t body_length;
    const struct error *error; /* NULL when an answer came */
};
typedef void http_done(void *context, const struct http_response *response);
/* Streamed bodies: returns 0 to go on, -1 (with error filled) to abort the transfer. Called only
 * for status 2xx; other bodies are collected for `done`. */
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
    /* Never sent over plain HTTP to another host than loopback or by a proxy, nor to a redirect's. */
    const char *bearer_token;
    size_t max_body;         /* ceiling of a collected answer; 0: 16 MiB */
    int64_t timeout_ms;      /* of the whole transfer; 0: none */
    int64_t idle_timeout_ms; /* ends a stream on which no byte came for so long; 0: none */
    bool follow_redirects;   /* at most 5, same or stronger scheme; false for everything but downloads */
    /* Asks for the bytes from this position on. An answer that has others fails with ERROR_CONFLICT; status 416: there are no more. */
    int64_t resume_from;
    http_data *on_data;         /* NULL: collect */
    http_progress *on_progress; /* NULL: none */
    http_done *done;
    void *context;
};

/* Copies what it needs. `done` is called from the loop, never from within this call. */
struct http_transfer *http_client_start(struct http_client *client, const struct http_request *request);
/* `done` is called with ERROR_CANCELLED before this returns. The handle is dead after `done`. */
void http_transfer_cancel(struct http_transfer *transfer);

#endif
