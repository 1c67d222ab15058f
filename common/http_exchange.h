/* SPDX-License-Identifier: Apache-2.0
 *
 * What http_server.c and http_server_loop.c share and nobody else includes: the
 * server, one exchange, and the door through which a stream learns that its
 * connection ended.
 */
#ifndef COXSWAIN_COMMON_HTTP_EXCHANGE_H
#define COXSWAIN_COMMON_HTTP_EXCHANGE_H

#include <microhttpd.h>

#include "common/buffer.h"
#include "common/http_server.h"

/* A connection. While no request of it is being answered it is in one of the server's lists, and may be closed to make room. */
struct http_connection {
    struct http_connection *next, *previous;
    struct http_connection_list *list; /* NULL: in none */
    int socket;
    bool closing; /* shut down, not yet reported as closed */
};

/* In the order in which they were added. */
struct http_connection_list {
    struct http_connection *first, *last;
};

struct http_server {
    struct MHD_Daemon *daemon;
    unsigned max_connections, idle_seconds;
    unsigned connections, closing;         /* open now, and how many of them are shut down */
    struct http_connection_list strangers; /* have not sent a complete request yet */
    struct http_connection_list idle;      /* have, and are kept for the next one */
    size_t max_body;
    http_handler *handler;
    void *context;
    struct http_exchange *exchanges; /* all that are under way */
    bool stopping;
    void (*detach)(struct http_server *server); /* takes the server off its event loop; NULL: has its own thread */
    void (*wake)(struct http_server *server);   /* has libmicrohttpd see to a resumed connection on the next turn */
    struct event_loop *loop;
    struct event_timer *timer;
    bool resumed;   /* a connection since libmicrohttpd last looked */
    int descriptor; /* libmicrohttpd's epoll descriptor */
};

struct http_header {
    struct http_header *next;
    char *name, *value;
};

struct http_exchange {
    struct http_server *server;
    struct MHD_Connection *connection;
    struct http_exchange *next, *previous;
    char *method, *path;
    struct buffer body;
    bool too_large;                /* the body passed the ceiling */
    bool handled;                  /* the handler has seen it */
    bool suspended;                /* libmicrohttpd leaves the connection alone until it is resumed */
    bool answered;                 /* the response is with libmicrohttpd */
    struct MHD_Response *response; /* waiting to be queued */
    int status;
    struct http_header *headers; /* set before the response exists */
    http_closed *closed;         /* of a deferred exchange */
    void *closed_context;
    struct http_stream *stream;
    void (*stream_ended)(struct http_stream *stream);
};

/* Options common to both kinds of server; `flags` are libmicrohttpd's. */
int http_server_open(const struct http_server_options *options, unsigned flags, struct http_server **ret_server,
                     struct error *error);
/* Hands `response` over, now or when the connection is resumed. */
void http_exchange_finish(struct http_exchange *exchange, int status, struct MHD_Response *response);
void http_exchange_suspend(struct http_exchange *exchange);
void http_exchange_resume(struct http_exchange *exchange);

#endif
