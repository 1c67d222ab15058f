/* SPDX-License-Identifier: Apache-2.0 */
#include "common/event_loop.h"
#include "common/http_exchange.h"
#include "common/memory.h"

/* ---- libmicrohttpd's epoll descriptor on the loop ---- */

static void on_timer(void *context);

/* On the loop of another, libmicrohttpd has no channel to wake itself, and MHD_get_timeout (before 0.9.76) does not tell
 * of connections that were resumed: whoever resumes one, also while libmicrohttpd runs, has it run once more. */
static void arm_timer(struct http_server *server)
{
    MHD_UNSIGNED_LONG_LONG delay_ms = 0;
    event_timer_cancel(server->timer);
    server->timer = NULL;
    if (server->resumed || MHD_get_timeout(server->daemon, &delay_ms) == MHD_YES)
        server->timer = event_timer_start(server->loop, (int64_t)delay_ms, on_timer, server);
}

static void run(struct http_server *server)
{
    server->resumed = false;
    MHD_run(server->daemon);
    arm_timer(server);
}

static void on_timer(void *context)
{
    struct http_server *server = context;
    server->timer = NULL;
    run(server);
}

static void on_ready(void *context, int descriptor, enum event_interest what)
{
    (void)descriptor, (void)what;
    run(context);
}

static void wake(struct http_server *server)
{
    if (server->resumed)
        return;
    server->resumed = true;
    arm_timer(server);
}

static void detach(struct http_server *server)
{
    event_loop_unwatch(server->loop, server->descriptor);
    event_timer_cancel(server->timer);
    server->timer = NULL;
}

int http_server_start_on_loop(const struct http_server_options *options, struct event_loop *loop,
                              struct http_server **ret_server, struct error *error)
{
    struct http_server *server;
    if (http_server_open(options, MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, &server, error) < 0)
        return -1;
    server->loop = loop;
    server->descriptor = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    if (event_loop_watch(loop, server->descriptor, EVENT_READ, on_ready, server, error) < 0) {
        http_server_free(server);
        return -1;
    }
    server->detach = detach;
    server->wake = wake;
    *ret_server = server;
    return 0;
}

/* ---- answers without end ---- */

struct http_stream {
    struct http_exchange *exchange;
    struct buffer pending;
    size_t offset; /* bytes of `pending` that are sent */
    bool finished; /* ends once `pending` is sent */
    bool broken;   /* ends at once */
    bool watched;
    int socket;
    http_closed *closed;
    void *context;
};

static void drop_sent(struct http_stream *stream)
{
    if (stream->offset < stream->pending.length / 2)
        return;
    buffer_consume(&stream->pending, stream->offset);
    stream->offset = 0;
}

static ssize_t stream_read(void *context, uint64_t position, char *out, size_t room)
{
    struct http_stream *stream = context;
    (void)position;
    if (stream->broken || stream->exchange->server->stopping)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    size_t left = stream->pending.length - stream->offset;
    if (left == 0 && stream->finished)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (left == 0) {
        http_exchange_suspend(stream->exchange);
        return 0;
    }
    size_t length = left < room ? left : room;
    memcpy(out, stream->pending.data + stream->offset, length);
    stream->offset += length;
    drop_sent(stream);
    return (ssize_t)length;
}

static void stream_break(struct http_stream *stream)
{
    stream->broken = true;
    http_exchange_resume(stream->exchange);
}

static void stream_unwatch(struct http_stream *stream)
{
    if (stream->watched)
        event_loop_unwatch(stream->exchange->server->loop, stream->socket);
    stream->watched = false;
}

/* All that a client has to say during a stream is good-bye, by end of file or in TLS, whose version 1.3 hides that it is
 * one. A suspended connection would not hear it. Once the end is on its way, it may be the next request. */
static void stream_heard(void *context, int socket, enum event_interest what)
{
    struct http_stream *stream = context;
    (void)socket, (void)what;
    stream_unwatch(stream);
    if (!stream->finished)
        stream_break(stream);
}

static void stream_ended(struct http_stream *stream)
{
    stream_unwatch(stream);
    stream->closed(stream->context);
    buffer_release(&stream->pending);
    free(stream);
}

struct http_stream *http_exchange_stream(struct http_exchange *exchange, int status, const char *content_type,
                                         size_t max_pending, http_closed *closed, void *context)
{
    struct http_stream *stream = memory_allocate(1, sizeof *stream);
    *stream = (struct http_stream){.exchange = exchange, .closed = closed, .context = context};
    buffer_init(&stream->pending, max_pending);
    stream->socket = MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    stream->watched =
        event_loop_watch(exchange->server->loop, stream->socket, EVENT_READ, stream_heard, stream, NULL) == 0;
    exchange->stream = stream;
    exchange->stream_ended = stream_ended;
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 65536, stream_read, stream, NULL);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    http_exchange_finish(exchange, status, response);
    return stream;
}

bool http_stream_write(struct http_stream *stream, const void *bytes, size_t length)
{
    if (stream->broken || stream->finished)
        return false;
    if (buffer_append(&stream->pending, bytes, length, NULL) < 0) {
        stream_break(stream);
        return false;
    }
    http_exchange_resume(stream->exchange);
    return true;
}

void http_stream_close(struct http_stream *stream)
{
    stream->finished = true;
    http_exchange_resume(stream->exchange);
}
