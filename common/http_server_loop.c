/* SPDX-License-Identifier: Apache-2.0 */
#include "common/event_loop.h"
#include "common/http_exchange.h"
#include "common/memory.h"

/* ---- libmicrohttpd's epoll descriptor on the loop ---- */

static void on_timer(void *context);

/* On an event loop, libmicrohttpd has no channel to wake itself, and MHD_get_timeout (before 0.9.76) does not report connections that
 * were resumed. So resuming one, also from inside libmicrohttpd, makes the loop run it once more. */
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

struct http_bytes {
    unsigned references;
    size_t length;
    char data[];
};

struct http_bytes *http_bytes_new(const void *bytes, size_t length)
{
    struct http_bytes *shared = memory_allocate(1, sizeof *shared + length);
    shared->references = 1;
    shared->length = length;
    if (length > 0)
        memcpy(shared->data, bytes, length);
    return shared;
}

void http_bytes_release(struct http_bytes *bytes)
{
    if (bytes && --bytes->references == 0)
        free(bytes);
}

struct chunk {
    struct chunk *next;
    struct http_bytes *bytes;
};

struct http_stream {
    struct http_exchange *exchange;
    struct chunk *first, *last; /* what is to be sent */
    size_t offset;              /* bytes of the first chunk that are sent */
    size_t pending;             /* bytes that are not */
    size_t max_pending;
    bool finished; /* ends once all chunks are sent */
    bool broken;   /* ends at once */
    bool watched;
    int socket;
    http_closed *closed;
    void *context;
};

static void drop_first_chunk(struct http_stream *stream)
{
    struct chunk *chunk = stream->first;
    stream->first = chunk->next;
    if (stream->first == NULL)
        stream->last = NULL;
    stream->offset = 0;
    http_bytes_release(chunk->bytes);
    free(chunk);
}

/* Fills `out` from as many chunks as it takes. */
static size_t take_pending(struct http_stream *stream, char *out, size_t room)
{
    size_t taken = 0;
    while (stream->first && taken < room) {
        const struct http_bytes *bytes = stream->first->bytes;
        size_t left = bytes->length - stream->offset, length = left < room - taken ? left : room - taken;
        memcpy(out + taken, bytes->data + stream->offset, length);
        taken += length;
        stream->offset += length;
        if (stream->offset == bytes->length)
            drop_first_chunk(stream);
    }
    stream->pending -= taken;
    return taken;
}

static ssize_t stream_read(void *context, uint64_t position, char *out, size_t room)
{
    struct http_stream *stream = context;
    (void)position;
    if (stream->broken || stream->exchange->server->stopping)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (stream->pending == 0 && stream->finished)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (stream->pending == 0) {
        http_exchange_suspend(stream->exchange);
        return 0;
    }
    return (ssize_t)take_pending(stream, out, room);
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

/* During a stream, a client can only end the connection, by end of file or in TLS, where version 1.3 hides that it is one. libmicrohttpd
 * would not notice, because the connection is suspended. Once the stream is finished, it may be the next request. */
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
    while (stream->first)
        drop_first_chunk(stream);
    free(stream);
}

struct http_stream *http_exchange_stream(struct http_exchange *exchange, int status, const char *content_type,
                                         size_t max_pending, http_closed *closed, void *context)
{
    struct http_stream *stream = memory_allocate(1, sizeof *stream);
    *stream =
        (struct http_stream){.exchange = exchange, .max_pending = max_pending, .closed = closed, .context = context};
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

bool http_stream_write_shared(struct http_stream *stream, struct http_bytes *bytes)
{
    if (stream->broken || stream->finished)
        return false;
    if (bytes->length == 0)
        return true;
    if (bytes->length > stream->max_pending - stream->pending) {
        stream_break(stream);
        return false;
    }
    struct chunk *chunk = memory_allocate(1, sizeof *chunk);
    chunk->bytes = bytes;
    bytes->references++;
    *(stream->last ? &stream->last->next : &stream->first) = chunk;
    stream->last = chunk;
    stream->pending += bytes->length;
    http_exchange_resume(stream->exchange);
    return true;
}

bool http_stream_write(struct http_stream *stream, const void *bytes, size_t length)
{
    struct http_bytes *copy = http_bytes_new(bytes, length);
    bool written = http_stream_write_shared(stream, copy);
    http_bytes_release(copy);
    return written;
}

void http_stream_close(struct http_stream *stream)
{
    stream->finished = true;
    http_exchange_resume(stream->exchange);
}
