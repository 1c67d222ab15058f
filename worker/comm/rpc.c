/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/rpc.h"

#include <errno.h>
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "common/scope.h"

/* What a completion queue's tag points to. */
struct completion {
    void (*done)(void *owner, bool success);
    void *owner;
};

struct outgoing {
    struct outgoing *next;
    grpc_byte_buffer *payload;
};

struct rpc_stream {
    struct rpc *rpc;
    struct rpc_stream *previous, *next; /* in the rpc's list */
    grpc_call *call;
    grpc_channel *channel; /* a client's own; NULL in a server */
    struct rpc_stream_events events;
    void *context;
    bool is_server;
    bool ended;       /* the call is over, whatever operations are still to come back */
    bool close_asked; /* server: send the status once the queue is empty */
    bool status_sent;
    unsigned outstanding; /* operations that the completion queue still owes */

    struct completion opened, received, sent, finished, status_flushed;
    grpc_byte_buffer *incoming;
    struct outgoing *queue, **queue_end;
    bool sending;

    grpc_metadata_array initial_metadata, trailing_metadata;
    grpc_status_code status;
    grpc_slice details;
    int cancelled;
};

struct rpc_server {
    struct rpc *rpc;
    struct rpc_server *next;
    grpc_server *server;
    uint16_t port;
    const struct rpc_method *methods;
    unsigned count;
    void *context;
    struct completion requested, stopped;
    grpc_call *call;
    grpc_call_details details;
    grpc_metadata_array metadata;
};

struct rpc {
    grpc_completion_queue *queue;
    pthread_t thread;
    bool has_thread;
    rpc_tick *tick;
    void *tick_context;
    int64_t tick_ms;
    grpc_channel *wake_channel;
    grpc_call *wake_call;
    atomic_bool wake_pending;
    atomic_bool stopping;
    bool servers_stopped;
    unsigned servers_running;
    pthread_mutex_t lock; /* of `servers`, which other threads add to */
    struct rpc_server *servers;
    struct rpc_stream *streams;
};

/* ---------------------------------------------------------------- channel and server settings */

static grpc_arg integer_argument(const char *key, int value)
{
    return (grpc_arg){.type = GRPC_ARG_INTEGER, .key = (char *)key, .value.integer = value};
}

#define CHANNEL_ARGUMENTS_MAX 12

/* No look-ups, no shared state between channels, and a silent peer is noticed. */
static unsigned client_arguments(grpc_arg arguments[CHANNEL_ARGUMENTS_MAX])
{
    unsigned n = 0;
    arguments[n++] = integer_argument(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, RPC_MESSAGE_MAX);
    arguments[n++] = integer_argument(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
    arguments[n++] = integer_argument(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments[n++] = integer_argument(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments[n++] = integer_argument(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments[n++] = integer_argument(GRPC_ARG_KEEPALIVE_TIME_MS, RPC_KEEPALIVE_MS);
    arguments[n++] = integer_argument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, RPC_KEEPALIVE_MS);
    arguments[n++] = integer_argument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    arguments[n++] = integer_argument(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
    return n;
}

static unsigned server_arguments(grpc_arg arguments[CHANNEL_ARGUMENTS_MAX])
{
    unsigned n = 0;
    arguments[n++] = integer_argument(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, RPC_MESSAGE_MAX);
    arguments[n++] = integer_argument(GRPC_ARG_KEEPALIVE_TIME_MS, RPC_KEEPALIVE_MS);
    arguments[n++] = integer_argument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, RPC_KEEPALIVE_MS);
    arguments[n++] = integer_argument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, RPC_KEEPALIVE_MS / 2);
    arguments[n++] = integer_argument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    return n;
}

static char *format_target(const char *scheme, const char *address, uint16_t port)
{
    if (address == NULL || *address == '\0')
        return memory_format("%s0.0.0.0:%u", scheme, port);
    if (strchr(address, ':') != NULL)
        return memory_format("%s[%s]:%u", *scheme ? "ipv6:" : "", address, port);
    return memory_format("%s%s:%u", scheme, address, port);
}

/* ---------------------------------------------------------------- streams */

static void stream_unlink(struct rpc_stream *stream)
{
    if (stream->previous != NULL)
        stream->previous->next = stream->next;
    else
        stream->rpc->streams = stream->next;
    if (stream->next != NULL)
        stream->next->previous = stream->previous;
}

static void stream_drop_queue(struct rpc_stream *stream)
{
    while (stream->queue != NULL) {
        struct outgoing *first = stream->queue;
        stream->queue = first->next;
        grpc_byte_buffer_destroy(first->payload);
        free(first);
    }
    stream->queue_end = &stream->queue;
}

static int stream_verdict(const struct rpc_stream *stream, struct error *error)
{
    if (stream->is_server)
        return stream->cancelled && !stream->status_sent ? error_set(error, ERROR_UNAVAILABLE, "connection closed") : 0;
    SCOPED_FREE char *text = grpc_slice_to_c_string(stream->details);
    switch (stream->status) {
    case GRPC_STATUS_OK:
        return 0;
    case GRPC_STATUS_DEADLINE_EXCEEDED:
        return error_set(error, ERROR_TIMEOUT, "no answer in time");
    case GRPC_STATUS_CANCELLED:
        return error_set(error, ERROR_CANCELLED, "cancelled");
    case GRPC_STATUS_UNIMPLEMENTED:
        return error_set(error, ERROR_UNSUPPORTED, "the peer has no such method");
    default:
        return error_set(error, ERROR_UNAVAILABLE, "connection closed (%.200s)", text);
    }
}

static void stream_release(struct rpc_stream *stream)
{
    struct error error = ERROR_INIT;
    int failed = stream_verdict(stream, &error);
    if (stream->events.closed != NULL)
        stream->events.closed(stream->context, stream, failed < 0 ? &error : NULL);
    stream_unlink(stream);
    stream_drop_queue(stream);
    if (stream->incoming != NULL)
        grpc_byte_buffer_destroy(stream->incoming);
    grpc_metadata_array_destroy(&stream->initial_metadata);
    grpc_metadata_array_destroy(&stream->trailing_metadata);
    grpc_slice_unref(stream->details);
    grpc_call_unref(stream->call);
    if (stream->channel != NULL)
        grpc_channel_destroy(stream->channel);
    free(stream);
}

static void stream_settle(struct rpc_stream *stream)
{
    stream->outstanding--;
    if (stream->ended && stream->outstanding == 0)
        stream_release(stream);
}

static void stream_batch(struct rpc_stream *stream, const grpc_op *operations, size_t count, struct completion *tag)
{
    stream->outstanding++;
    if (grpc_call_start_batch(stream->call, operations, count, tag, NULL) != GRPC_CALL_OK)
        abort();
}

static void stream_receive(struct rpc_stream *stream)
{
    grpc_op operation = {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &stream->incoming};
    stream_batch(stream, &operation, 1, &stream->received);
}

static void stream_send_status(struct rpc_stream *stream)
{
    stream->status_sent = true;
    grpc_op operation = {.op = GRPC_OP_SEND_STATUS_FROM_SERVER, .data.send_status_from_server.status = GRPC_STATUS_OK};
    stream_batch(stream, &operation, 1, &stream->status_flushed);
}

static void stream_pump(struct rpc_stream *stream)
{
    if (stream->sending || stream->ended || stream->status_sent)
        return;
    if (stream->queue != NULL) {
        grpc_op operation = {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = stream->queue->payload};
        stream->sending = true;
        stream_batch(stream, &operation, 1, &stream->sent);
    } else if (stream->close_asked && stream->is_server) {
        stream_send_status(stream);
    }
}

static void stream_on_settled(void *owner, bool success)
{
    (void)success;
    stream_settle(owner);
}

static void stream_on_sent(void *owner, bool success)
{
    struct rpc_stream *stream = owner;
    struct outgoing *first = stream->queue;
    stream->queue = first->next;
    if (stream->queue == NULL)
        stream->queue_end = &stream->queue;
    grpc_byte_buffer_destroy(first->payload);
    free(first);
    stream->sending = false;
    if (success)
        stream_pump(stream);
    stream_settle(stream);
}

static void stream_on_received(void *owner, bool success)
{
    struct rpc_stream *stream = owner;
    if (success && stream->incoming != NULL) {
        grpc_byte_buffer_reader reader;
        if (grpc_byte_buffer_reader_init(&reader, stream->incoming)) {
            grpc_slice bytes = grpc_byte_buffer_reader_readall(&reader);
            if (!stream->ended)
                stream->events.message(stream->context, stream, GRPC_SLICE_START_PTR(bytes), GRPC_SLICE_LENGTH(bytes));
            grpc_slice_unref(bytes);
            grpc_byte_buffer_reader_destroy(&reader);
        }
        grpc_byte_buffer_destroy(stream->incoming);
        stream->incoming = NULL;
        if (!stream->ended)
            stream_receive(stream);
    }
    stream_settle(stream);
}

/* Client: the status has come. Server: the call is over. */
static void stream_on_finished(void *owner, bool success)
{
    (void)success;
    struct rpc_stream *stream = owner;
    stream->ended = true;
    stream_settle(stream);
}

static struct rpc_stream *stream_new(struct rpc *rpc, grpc_call *call, bool is_server)
{
    struct rpc_stream *stream = memory_allocate(1, sizeof(*stream));
    *stream = (struct rpc_stream){.rpc = rpc, .call = call, .is_server = is_server, .next = rpc->streams};
    stream->opened = (struct completion){stream_on_settled, stream};
    stream->received = (struct completion){stream_on_received, stream};
    stream->sent = (struct completion){stream_on_sent, stream};
    stream->finished = (struct completion){stream_on_finished, stream};
    stream->status_flushed = (struct completion){stream_on_settled, stream};
    stream->queue_end = &stream->queue;
    stream->details = grpc_empty_slice();
    grpc_metadata_array_init(&stream->initial_metadata);
    grpc_metadata_array_init(&stream->trailing_metadata);
    if (rpc->streams != NULL)
        rpc->streams->previous = stream;
    rpc->streams = stream;
    return stream;
}

int rpc_stream_open(struct rpc *rpc, const char *address, uint16_t port, const char *method, int64_t lifetime_ms,
                    const struct rpc_stream_events *events, void *context, struct rpc_stream **ret_stream,
                    struct error *error)
{
    grpc_arg list[CHANNEL_ARGUMENTS_MAX];
    grpc_channel_args arguments = {.num_args = client_arguments(list), .args = list};
    SCOPED_FREE char *target = format_target("ipv4:", address, port);
    grpc_channel_credentials *credentials = grpc_insecure_credentials_create();
    grpc_channel *channel = grpc_channel_create(target, credentials, &arguments);
    grpc_channel_credentials_release(credentials);
    if (channel == NULL)
        return error_set(error, ERROR_INVALID, "%s: not an address that can be dialled", target);

    gpr_timespec deadline = gpr_inf_future(GPR_CLOCK_MONOTONIC);
    if (lifetime_ms > 0)
        deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(lifetime_ms, GPR_TIMESPAN));
    grpc_slice name = grpc_slice_from_copied_string(method);
    grpc_call *call =
        grpc_channel_create_call(channel, NULL, GRPC_PROPAGATE_DEFAULTS, rpc->queue, name, NULL, deadline, NULL);
    grpc_slice_unref(name);

    struct rpc_stream *stream = stream_new(rpc, call, false);
    stream->channel = channel;
    stream->events = *events;
    stream->context = context;
    grpc_op opening[] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA},
        {.op = GRPC_OP_RECV_INITIAL_METADATA,
         .data.recv_initial_metadata.recv_initial_metadata = &stream->initial_metadata},
    };
    stream_batch(stream, opening, 2, &stream->opened);
    grpc_op ending = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
                      .data.recv_status_on_client = {.trailing_metadata = &stream->trailing_metadata,
                                                     .status = &stream->status,
                                                     .status_details = &stream->details}};
    stream_batch(stream, &ending, 1, &stream->finished);
    stream_receive(stream);
    *ret_stream = stream;
    return 0;
}

void rpc_stream_send(struct rpc_stream *stream, const void *bytes, size_t length)
{
    if (stream->ended || stream->close_asked || length > RPC_MESSAGE_MAX)
        return;
    grpc_slice slice = grpc_slice_from_copied_buffer(bytes, length);
    struct outgoing *message = memory_allocate(1, sizeof(*message));
    message->payload = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    *stream->queue_end = message;
    stream->queue_end = &message->next;
    stream_pump(stream);
}

void rpc_stream_close(struct rpc_stream *stream)
{
    if (stream->close_asked)
        return;
    stream->close_asked = true;
    if (stream->is_server)
        stream_pump(stream);
    else
        grpc_call_cancel(stream->call, NULL);
}

/* ---------------------------------------------------------------- servers */

static void server_request(struct rpc_server *server)
{
    grpc_call_details_init(&server->details);
    grpc_metadata_array_init(&server->metadata);
    if (grpc_server_request_call(server->server, &server->call, &server->details, &server->metadata, server->rpc->queue,
                                 server->rpc->queue, &server->requested) != GRPC_CALL_OK)
        abort();
}

static const struct rpc_method *server_find(const struct rpc_server *server)
{
    for (unsigned i = 0; i < server->count; i++)
        if (grpc_slice_str_cmp(server->details.method, server->methods[i].name) == 0)
            return &server->methods[i];
    return NULL;
}

static void ignore_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    (void)context, (void)stream, (void)bytes, (void)length;
}

static void server_refuse(struct rpc_stream *stream)
{
    static const struct rpc_stream_events nobody = {.message = ignore_message};
    stream->events = nobody;
    stream->status_sent = true;
    stream->close_asked = true;
    grpc_op operations[] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA},
        {.op = GRPC_OP_SEND_STATUS_FROM_SERVER, .data.send_status_from_server.status = GRPC_STATUS_UNIMPLEMENTED},
    };
    stream_batch(stream, operations, 2, &stream->opened);
}

static void server_accept(struct rpc_server *server)
{
    const struct rpc_method *method = server_find(server);
    struct rpc_stream *stream = stream_new(server->rpc, server->call, true);
    server->call = NULL;
    grpc_op ending = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER, .data.recv_close_on_server.cancelled = &stream->cancelled};
    stream_batch(stream, &ending, 1, &stream->finished);
    if (method == NULL) {
        server_refuse(stream);
        return;
    }
    grpc_op opening = {.op = GRPC_OP_SEND_INITIAL_METADATA};
    stream_batch(stream, &opening, 1, &stream->opened);
    method->opened(server->context, stream, &stream->events, &stream->context);
    stream_receive(stream);
}

static void server_on_requested(void *owner, bool success)
{
    struct rpc_server *server = owner;
    if (success)
        server_accept(server);
    grpc_call_details_destroy(&server->details);
    grpc_metadata_array_destroy(&server->metadata);
    if (success && !atomic_load(&server->rpc->stopping))
        server_request(server);
}

static void server_on_stopped(void *owner, bool success)
{
    (void)success;
    struct rpc_server *server = owner;
    server->rpc->servers_running--;
}

int rpc_server_start(struct rpc *rpc, const char *address, uint16_t port, const struct rpc_method *methods,
                     unsigned count, void *context, struct rpc_server **ret_server, struct error *error)
{
    grpc_arg list[CHANNEL_ARGUMENTS_MAX];
    grpc_channel_args arguments = {.num_args = server_arguments(list), .args = list};
    struct rpc_server *server = memory_allocate(1, sizeof(*server));
    *server = (struct rpc_server){.rpc = rpc, .methods = methods, .count = count, .context = context};
    server->requested = (struct completion){server_on_requested, server};
    server->stopped = (struct completion){server_on_stopped, server};
    server->server = grpc_server_create(&arguments, NULL);
    grpc_server_register_completion_queue(server->server, rpc->queue, NULL);
    SCOPED_FREE char *target = format_target("", address, port);
    grpc_server_credentials *credentials = grpc_insecure_server_credentials_create();
    int bound = grpc_server_add_http2_port(server->server, target, credentials);
    grpc_server_credentials_release(credentials);
    grpc_server_start(server->server);

    pthread_mutex_lock(&rpc->lock);
    server->next = rpc->servers;
    rpc->servers = server;
    pthread_mutex_unlock(&rpc->lock);
    if (bound <= 0)
        return error_set(error, ERROR_UNAVAILABLE, "cannot listen on %s; is another process using the port?", target);
    server->port = (uint16_t)bound;
    server_request(server);
    *ret_server = server;
    return 0;
}

uint16_t rpc_server_port(const struct rpc_server *server)
{
    return server->port;
}

/* ---------------------------------------------------------------- the thread */

static void rpc_stop_servers(struct rpc *rpc)
{
    rpc->servers_stopped = true;
    pthread_mutex_lock(&rpc->lock);
    for (struct rpc_server *server = rpc->servers; server != NULL; server = server->next) {
        rpc->servers_running++;
        grpc_server_shutdown_and_notify(server->server, rpc->queue, &server->stopped);
        grpc_server_cancel_all_calls(server->server);
    }
    pthread_mutex_unlock(&rpc->lock);
    for (struct rpc_stream *stream = rpc->streams; stream != NULL; stream = stream->next)
        grpc_call_cancel(stream->call, NULL);
}

/* True when nothing more can come. */
static bool rpc_wind_down(struct rpc *rpc)
{
    if (!rpc->servers_stopped)
        rpc_stop_servers(rpc);
    return rpc->servers_running == 0 && rpc->streams == NULL && !atomic_load(&rpc->wake_pending);
}

static void *rpc_run(void *context)
{
    struct rpc *rpc = context;
    int64_t tick_ns = rpc->tick_ms * 1000000;
    int64_t next_tick = clock_monotonic_ns() + tick_ns;
    while (!atomic_load(&rpc->stopping) || !rpc_wind_down(rpc)) {
        int64_t wait = next_tick - clock_monotonic_ns();
        gpr_timespec deadline =
            gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(wait > 0 ? wait : 0, GPR_TIMESPAN));
        grpc_event event = grpc_completion_queue_next(rpc->queue, deadline, NULL);
        bool woken = false;
        if (event.type == GRPC_OP_COMPLETE) {
            struct completion *completion = event.tag;
            woken = completion == NULL;
            if (!woken)
                completion->done(completion->owner, event.success != 0);
            else /* not a store: the tick must see what was written before every rpc_wake */
                atomic_exchange(&rpc->wake_pending, false);
        }
        if (woken || clock_monotonic_ns() >= next_tick) {
            next_tick = clock_monotonic_ns() + tick_ns;
            if (rpc->tick != NULL && !atomic_load(&rpc->stopping))
                rpc->tick(rpc->tick_context);
        }
    }
    return NULL;
}

/* gRPC has no public way to post to a queue; an empty batch on a call that never starts completes at once. */
static void rpc_prepare_wake(struct rpc *rpc)
{
    rpc->wake_channel = grpc_lame_client_channel_create("wake", GRPC_STATUS_UNAVAILABLE, "never used");
    grpc_slice name = grpc_slice_from_static_string("/wake");
    rpc->wake_call = grpc_channel_create_call(rpc->wake_channel, NULL, GRPC_PROPAGATE_DEFAULTS, rpc->queue, name, NULL,
                                              gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
}

void rpc_wake(struct rpc *rpc)
{
    if (!atomic_exchange(&rpc->wake_pending, true))
        grpc_call_start_batch(rpc->wake_call, NULL, 0, NULL, NULL);
}

int rpc_new(rpc_tick *tick, void *context, int64_t tick_ms, struct rpc **ret_rpc, struct error *error)
{
    grpc_init();
    struct rpc *rpc = memory_allocate(1, sizeof(*rpc));
    rpc->tick = tick;
    rpc->tick_context = context;
    rpc->tick_ms = tick_ms > 0 ? tick_ms : 1000;
    pthread_mutex_init(&rpc->lock, NULL);
    rpc->queue = grpc_completion_queue_create_for_next(NULL);
    rpc_prepare_wake(rpc);
    errno = pthread_create(&rpc->thread, NULL, rpc_run, rpc);
    rpc->has_thread = errno == 0;
    if (!rpc->has_thread) {
        error_set_errno(error, "start the thread for messages");
        rpc_free(rpc);
        return -1;
    }
    *ret_rpc = rpc;
    return 0;
}

static void rpc_drain(struct rpc *rpc)
{
    grpc_completion_queue_shutdown(rpc->queue);
    while (grpc_completion_queue_next(rpc->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL).type !=
           GRPC_QUEUE_SHUTDOWN)
        ;
}

void rpc_stop(struct rpc *rpc)
{
    atomic_store(&rpc->stopping, true);
    if (!rpc->has_thread)
        return;
    rpc_wake(rpc);
    pthread_join(rpc->thread, NULL);
    rpc->has_thread = false;
}

void rpc_free(struct rpc *rpc)
{
    rpc_stop(rpc);
    grpc_call_unref(rpc->wake_call);
    grpc_channel_destroy(rpc->wake_channel);
    rpc_drain(rpc);
    while (rpc->servers != NULL) {
        struct rpc_server *server = rpc->servers;
        rpc->servers = server->next;
        grpc_server_destroy(server->server);
        free(server);
    }
    grpc_completion_queue_destroy(rpc->queue);
    pthread_mutex_destroy(&rpc->lock);
    free(rpc);
    grpc_shutdown();
}
