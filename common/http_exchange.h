/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the structs and functions that http_server.c and http_server_loop.c share to implement http_server.h: http_server.c handles
 * connections, requests and answers, http_server_loop.c runs a server on an event loop. No other file includes this header.
 */
#ifndef COXSWAIN_COMMON_HTTP_EXCHANGE_H
#define COXSWAIN_COMMON_HTTP_EXCHANGE_H

#include <microhttpd.h>
#include <pthread.h>

#include "common/buffer.h"
#include "common/http_server.h"

/* A connection. It is in one of the server's lists, and may be closed to make room, except while the server answers its request. */
struct http_connection {
    struct http_connection *next, *previous;
    struct http_connection_list *list; /* NULL: in none */
    int socket;
    bool closing; /* shut down, not yet reported as closed */
};

/* Connections in the order in which they were added. */
struct http_connection_list {
    struct http_connection *first, *last;
};

struct http_server {
    struct MHD_Daemon *daemon;
    unsigned max_connections, idle_seconds;
    unsigned connections, closing;         /* open connections; those of them that are shut down */
    struct http_connection_list strangers; /* connections that have not sent a complete request yet */
    struct http_connection_list idle;      /* connections that wait for their next request */
    size_t max_body;
    http_handler *handler;
    void *context;
    struct http_exchange *exchanges; /* all that are under way */
    bool stopping;
    void (*detach)(struct http_server *server); /* takes the server off its event loop; NULL: has its own thread */
    pthread_t thread;
    int stop;                                 /* an eventfd that ends the thread; -1: there is none */
    void (*wake)(struct http_server *server); /* makes the loop run libmicrohttpd on its next turn */
    struct event_loop *loop;
    struct event_timer *timer;
    bool resumed;   /* a connection was resumed since libmicrohttpd last ran */
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
    bool too_large;                /* the body is larger than max_body */
    bool handled;                  /* the handler was called */
    bool suspended;                /* libmicrohttpd ignores the connection until it is resumed */
    bool answered;                 /* the response is queued in libmicrohttpd */
    struct MHD_Response *response; /* waits to be queued */
    int status;
    struct http_header *headers; /* added to the response when it is queued */
    http_closed *closed;         /* set while a deferred exchange waits for its answer */
    void *closed_context;
    struct http_stream *stream;
    void (*stream_ended)(struct http_stream *stream); /* the stream's connection is closed or its answer is complete */
};

/* Starts libmicrohttpd's daemon with `flags`, its own constants. */
int http_server_open(const struct http_server_options *options, unsigned flags, struct http_server **ret_server,
                     struct error *error);
/* Sets the exchange's response and resumes its connection; libmicrohttpd's next callback queues it. Takes ownership of `response`. */
void http_exchange_finish(struct http_exchange *exchange, int status, struct MHD_Response *response);
void http_exchange_suspend(struct http_exchange *exchange);
void http_exchange_resume(struct http_exchange *exchange);

#endif
