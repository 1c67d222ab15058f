/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/rpc.h"

#include <errno.h>
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>

#include "common/clock.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/comm/heartbeat.h"
#include "worker/comm/rpc_connections.h"
#include "worker/comm/rpc_log.h"
#include "worker/comm/traffic.h"

#define CHANNEL_ARGUMENTS_MAX 12
/* The name of a call's metadata entry with the token of the connection that carries the call. gRPC allows raw bytes in headers whose names end
 * in -bin. */
#define TOKEN_HEADER "coxswain-connection-bin"

/* The tag of an operation in gRPC's completion queue: `done` is called when the operation has completed. */
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
    grpc_channel *channel;       /* a client's own; NULL in a server */
    struct rpc_dialled *dialled; /* a client's: why its connection could not be established; NULL in a server */
    struct pod_identity caller;  /* server: who opened it, if it `has_caller` */
    bool has_caller;
    struct rpc_stream_events events;
    void *context;
    bool is_server;
    bool ended;       /* the call has ended, although some of its operations may not have completed */
    bool close_asked; /* server: send the status once the queue is empty */
    bool status_sent;
    unsigned outstanding; /* operations that have not completed */

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
    struct rpc_connections *connections;
    pthread_t thread;
    bool has_thread;
    struct heartbeat heartbeat;
    rpc_tick *tick; /* called on the thread about every tick_ms, and soon after rpc_wake; may be NULL */
    void *tick_context;
    int64_t tick_ms;
    int64_t read_until_ms;      /* all that arrived before this time (clock_monotonic_ms) has been read and handled */
    bool has_written;           /* gRPC was given data that rpc_connections_carry has not moved to the sockets yet */
    atomic_bool ticks;          /* rpc_start_ticks was called */
    grpc_channel *wake_channel; /* never connected; rpc_wake starts an empty batch on its call to wake the thread */
    grpc_call *wake_call;
    atomic_bool wake_pending;
    atomic_bool stopping;
    bool servers_stopped;
    unsigned servers_running;
    pthread_mutex_t lock; /* of `servers`, which other threads add to */
    struct rpc_server *servers;
    struct rpc_stream *streams;
};

/* ---------------------------------------------------------------- arguments of channels and servers */

static grpc_arg integer_argument(const char *key, int value)
{
    return (grpc_arg){.type = GRPC_ARG_INTEGER, .key = (char *)key, .value.integer = value};
}

/* A silent peer is noticed. */
static unsigned client_arguments(grpc_arg arguments[CHANNEL_ARGUMENTS_MAX])
{
    unsigned n = 0;
    arguments[n++] = integer_argument(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, RPC_MESSAGE_MAX);
    arguments[n++] = integer_argument(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments[n++] = integer_argument(GRPC_ARG_KEEPALIVE_TIME_MS, RPC_KEEPALIVE_MS);
    arguments[n++] = integer_argument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, RPC_KEEPALIVE_MS);
    arguments[n++] = integer_argument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    return n;
}

static unsigned server_arguments(grpc_arg arguments[CHANNEL_ARGUMENTS_MAX])
{
    unsigned n = 0;
    arguments[n++] = integer_argument(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, RPC_MESSAGE_MAX);
    arguments[n++] = integer_argument(GRPC_ARG_KEEPALIVE_TIME_MS, RPC_KEEPALIVE_MS);
    arguments[n++] = integer_argument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, RPC_KEEPALIVE_MS);
    arguments[n++] = integer_argument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, RPC_KEEPALIVE_MS / 2);
    return n;
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

static void outgoing_free(struct outgoing *message)
{
    grpc_byte_buffer_destroy(message->payload);
    free(message);
}

static void stream_drop_queue(struct rpc_stream *stream)
{
    while (stream->queue != NULL) {
        struct outgoing *first = stream->queue;
        stream->queue = first->next;
        outgoing_free(first);
    }
    stream->queue_end = &stream->queue;
}

static int stream_verdict(const struct rpc_stream *stream, struct error *error)
{
    if (stream->is_server)
        return stream->cancelled && !stream->status_sent ? error_set(error, ERROR_UNAVAILABLE, "connection closed") : 0;
    if (stream->status == GRPC_STATUS_UNAVAILABLE && rpc_dialled_result(stream->dialled, error) < 0)
        return -1;
    SCOPED_FREE char *text = grpc_slice_to_c_string(stream->details);
    switch (stream->status) {
    case GRPC_STATUS_OK:
        return 0;
    case GRPC_STATUS_DEADLINE_EXCEEDED:
        return error_set(error, ERROR_TIMEOUT, "no answer in time");
    case GRPC_STATUS_CANCELLED:
        return error_set(error, ERROR_CANCELLED, "cancelled");
    case GRPC_STATUS_UNAUTHENTICATED:
        return error_set(error, ERROR_FORBIDDEN, "the peer does not know the connection that the call came over");
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
    if (stream->dialled != NULL)
        rpc_dialled_release(stream->dialled);
    free(stream);
}

static void stream_settle(struct rpc_stream *stream)
{
    stream->outstanding--;
    if (stream->ended && stream->outstanding == 0)
        stream_release(stream);
}

/* Starts operations of the stream, which count as one of its outstanding ones until they have completed. */
static void stream_batch(struct rpc_stream *stream, const grpc_op *operations, size_t count, struct completion *tag)
{
    stream->outstanding++;
    stream->rpc->has_written = true;
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

static bool is_drained(const struct rpc_stream *stream)
{
    return stream->queue == NULL || stream->queue->next == NULL;
}

static void stream_on_sent(void *owner, bool success)
{
    struct rpc_stream *stream = owner;
    struct outgoing *first = stream->queue;
    stream->queue = first->next;
    if (stream->queue == NULL)
        stream->queue_end = &stream->queue;
    outgoing_free(first);
    stream->sending = false;
    if (success)
        stream_pump(stream);
    if (success && !stream->ended && stream->events.drained != NULL && is_drained(stream))
        stream->events.drained(stream->context, stream);
    stream_settle(stream);
}

static void deliver_whole(struct rpc_stream *stream, grpc_byte_buffer_reader *reader)
{
    grpc_slice bytes = grpc_byte_buffer_reader_readall(reader);
    stream->events.message(stream->context, stream, GRPC_SLICE_START_PTR(bytes), GRPC_SLICE_LENGTH(bytes));
    grpc_slice_unref(bytes);
}

/* The slices belong to the byte buffer, which outlives the call. */
static void deliver_pieces(struct rpc_stream *stream, grpc_byte_buffer_reader *reader)
{
    struct rpc_piece pieces[RPC_PIECES_MAX];
    unsigned count = 0;
    grpc_slice *slice;
    while (count < RPC_PIECES_MAX && grpc_byte_buffer_reader_peek(reader, &slice))
        pieces[count++] = (struct rpc_piece){GRPC_SLICE_START_PTR(*slice), GRPC_SLICE_LENGTH(*slice)};
    if (count == RPC_PIECES_MAX)
        rpc_stream_close(stream);
    else
        stream->events.pieces(stream->context, stream, pieces, count);
}

static void stream_on_received(void *owner, bool success)
{
    struct rpc_stream *stream = owner;
    if (success && stream->incoming != NULL) {
        grpc_byte_buffer_reader reader;
        if (grpc_byte_buffer_reader_init(&reader, stream->incoming)) {
            if (!stream->ended && stream->events.pieces != NULL)
                deliver_pieces(stream, &reader);
            else if (!stream->ended)
                deliver_whole(stream, &reader);
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

/* Creates the stream of an incoming or outgoing call. */
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

/* gRPC's end of a new connection to there. */
static grpc_channel *open_channel(struct rpc *rpc, const char *address, uint16_t port,
                                  const unsigned char token[CONNECTION_TOKEN_BYTES], struct rpc_dialled **ret_dialled,
                                  struct error *error)
{
    int descriptor;
    grpc_arg list[CHANNEL_ARGUMENTS_MAX];
    grpc_channel_args arguments = {.num_args = client_arguments(list), .args = list};
    if (rpc_connections_dial(rpc->connections, address, port, token, &descriptor, ret_dialled, error) < 0)
        return NULL;
    grpc_channel_credentials *credentials = grpc_insecure_credentials_create();
    grpc_channel *channel = grpc_channel_create_from_fd(address, descriptor, credentials, &arguments);
    grpc_channel_credentials_release(credentials);
    return channel;
}

static void begin_call(struct rpc_stream *stream, const unsigned char token[CONNECTION_TOKEN_BYTES])
{
    grpc_metadata connection = {.key = grpc_slice_from_static_string(TOKEN_HEADER),
                                .value = grpc_slice_from_copied_buffer((const char *)token, CONNECTION_TOKEN_BYTES)};
    grpc_op opening[] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA, .data.send_initial_metadata = {.count = 1, .metadata = &connection}},
        {.op = GRPC_OP_RECV_INITIAL_METADATA,
         .data.recv_initial_metadata.recv_initial_metadata = &stream->initial_metadata},
    };
    stream_batch(stream, opening, 2, &stream->opened);
    grpc_slice_unref(connection.value);
    grpc_op ending = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
                      .data.recv_status_on_client = {.trailing_metadata = &stream->trailing_metadata,
                                                     .status = &stream->status,
                                                     .status_details = &stream->details}};
    stream_batch(stream, &ending, 1, &stream->finished);
    stream_receive(stream);
}

int rpc_stream_open(struct rpc *rpc, const char *address, uint16_t port, const char *method, int64_t lifetime_ms,
                    const struct rpc_stream_events *events, void *context, struct rpc_stream **ret_stream,
                    struct error *error)
{
    struct rpc_dialled *dialled;
    unsigned char token[CONNECTION_TOKEN_BYTES];
    if (getrandom(token, sizeof token, 0) != sizeof token)
        return error_set_errno(error, "read random bytes");
    grpc_channel *channel = open_channel(rpc, address, port, token, &dialled, error);
    if (channel == NULL)
        return -1;
    gpr_timespec deadline = gpr_inf_future(GPR_CLOCK_MONOTONIC);
    if (lifetime_ms > 0)
        deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(lifetime_ms, GPR_TIMESPAN));
    grpc_slice name = grpc_slice_from_copied_string(method);
    grpc_call *call =
        grpc_channel_create_call(channel, NULL, GRPC_PROPAGATE_DEFAULTS, rpc->queue, name, NULL, deadline, NULL);
    grpc_slice_unref(name);
    struct rpc_stream *stream = stream_new(rpc, call, false);
    stream->channel = channel;
    stream->dialled = dialled;
    stream->events = *events;
    stream->context = context;
    begin_call(stream, token);
    *ret_stream = stream;
    return 0;
}

const struct pod_identity *rpc_stream_caller(const struct rpc_stream *stream)
{
    return stream->has_caller && crew_key_is_set() ? &stream->caller : NULL;
}

/* Takes the slices over. */
static void enqueue(struct rpc_stream *stream, grpc_slice *slices, size_t count)
{
    struct outgoing *message = memory_allocate(1, sizeof(*message));
    message->payload = grpc_raw_byte_buffer_create(slices, count);
    for (size_t i = 0; i < count; i++)
        grpc_slice_unref(slices[i]);
    *stream->queue_end = message;
    stream->queue_end = &message->next;
    stream_pump(stream);
}

void rpc_stream_send(struct rpc_stream *stream, const void *bytes, size_t length)
{
    if (stream->ended || stream->close_asked || length > RPC_MESSAGE_MAX)
        return;
    traffic_count(length);
    grpc_slice slice = grpc_slice_from_copied_buffer(bytes, length);
    enqueue(stream, &slice, 1);
}

void rpc_stream_send_bulk(struct rpc_stream *stream, const void *head, size_t head_length, const void *body,
                          size_t body_length)
{
    if (stream->ended || stream->close_asked || head_length + body_length > RPC_MESSAGE_MAX)
        return;
    traffic_count(head_length + body_length);
    grpc_slice slices[] = {grpc_slice_from_copied_buffer(head, head_length),
                           grpc_slice_from_static_buffer(body, body_length)};
    enqueue(stream, slices, 2);
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

static void server_refuse(struct rpc_stream *stream, grpc_status_code status)
{
    static const struct rpc_stream_events nobody = {.message = ignore_message};
    stream->events = nobody;
    stream->status_sent = true;
    stream->close_asked = true;
    grpc_op operations[] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA},
        {.op = GRPC_OP_SEND_STATUS_FROM_SERVER, .data.send_status_from_server.status = status},
    };
    stream_batch(stream, operations, 2, &stream->opened);
}

/* Which connection the call came over, and so which pod sent it. */
static bool find_caller(struct rpc_server *server, struct pod_identity *ret_caller)
{
    for (size_t i = 0; i < server->metadata.count; i++) {
        const grpc_metadata *pair = &server->metadata.metadata[i];
        if (grpc_slice_str_cmp(pair->key, TOKEN_HEADER) == 0 &&
            GRPC_SLICE_LENGTH(pair->value) == CONNECTION_TOKEN_BYTES)
            return rpc_connections_find(server->rpc->connections, GRPC_SLICE_START_PTR(pair->value), ret_caller);
    }
    return false;
}

static void server_accept(struct rpc_server *server)
{
    const struct rpc_method *method = server_find(server);
    struct rpc_stream *stream = stream_new(server->rpc, server->call, true);
    server->call = NULL;
    grpc_op ending = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER, .data.recv_close_on_server.cancelled = &stream->cancelled};
    stream_batch(stream, &ending, 1, &stream->finished);
    stream->has_caller = find_caller(server, &stream->caller);
    if (method == NULL || !stream->has_caller) {
        server_refuse(stream, method == NULL ? GRPC_STATUS_UNIMPLEMENTED : GRPC_STATUS_UNAUTHENTICATED);
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

static void server_take_connection(void *context, int descriptor)
{
    struct rpc_server *server = context;
    grpc_server_credentials *credentials = grpc_insecure_server_credentials_create();
    grpc_server_add_channel_from_fd(server->server, descriptor, credentials);
    grpc_server_credentials_release(credentials);
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
    grpc_server_start(server->server);

    pthread_mutex_lock(&rpc->lock);
    server->next = rpc->servers;
    rpc->servers = server;
    pthread_mutex_unlock(&rpc->lock);
    if (rpc_connections_listen(rpc->connections, address, port, server_take_connection, server, &server->port, error) <
        0)
        return -1;
    server_request(server);
    *ret_server = server;
    return 0;
}

uint16_t rpc_server_port(const struct rpc_server *server)
{
    return server->port;
}

static void server_stop(struct rpc_server *server)
{
    server->rpc->servers_running++;
    rpc_connections_shut(server->rpc->connections, server);
    grpc_server_shutdown_and_notify(server->server, server->rpc->queue, &server->stopped);
    grpc_server_cancel_all_calls(server->server);
}

/* ---------------------------------------------------------------- the thread */

static void stop_servers(struct rpc *rpc)
{
    rpc->servers_stopped = true;
    pthread_mutex_lock(&rpc->lock);
    for (struct rpc_server *server = rpc->servers; server != NULL; server = server->next)
        server_stop(server);
    pthread_mutex_unlock(&rpc->lock);
    for (struct rpc_stream *stream = rpc->streams; stream != NULL; stream = stream->next)
        grpc_call_cancel(stream->call, NULL);
}

/* True when nothing more can come. */
static bool wind_down(struct rpc *rpc)
{
    if (!rpc->servers_stopped)
        stop_servers(rpc);
    return rpc->servers_running == 0 && rpc->streams == NULL && !atomic_load(&rpc->wake_pending);
}

static void *run(void *context)
{
    struct rpc *rpc = context;
    int64_t tick_ns = rpc->tick_ms * 1000000;
    int64_t next_tick = clock_monotonic_ns() + tick_ns;
    rpc_connections_block_signals();
    heartbeat_start(&rpc->heartbeat, "hears messages");
    while (!atomic_load(&rpc->stopping) || !wind_down(rpc)) {
        heartbeat_renew(&rpc->heartbeat);
        if (rpc->has_written)
            rpc_connections_carry(rpc->connections);
        rpc->has_written = false;
        int64_t wait = next_tick - clock_monotonic_ns();
        int64_t asked_ms = clock_monotonic_ms();
        bool quiet = rpc_connections_are_quiet(rpc->connections);
        gpr_timespec deadline =
            gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(wait > 0 ? wait : 0, GPR_TIMESPAN));
        grpc_event event = grpc_completion_queue_next(rpc->queue, deadline, NULL);
        bool woken = false;
        if (event.type == GRPC_QUEUE_TIMEOUT && quiet)
            rpc->read_until_ms = asked_ms;
        pthread_mutex_lock(&rpc->lock); /* see what rpc_server_start wrote on another thread, whatever gRPC orders */
        pthread_mutex_unlock(&rpc->lock);
        if (event.type == GRPC_OP_COMPLETE) {
            struct completion *completion = event.tag;
            woken = completion == NULL;
            if (!woken)
                completion->done(completion->owner, event.success != 0);
            else /* not a store: the tick must see what was written before every rpc_wake */
                atomic_exchange(&rpc->wake_pending, false);
        }
        if (woken || clock_monotonic_ns() >= next_tick) {
            if (!woken) /* by whoever wakes it often it would never find nothing to read */
                next_tick = clock_monotonic_ns() + tick_ns;
            if (rpc->tick != NULL && atomic_load(&rpc->ticks) && !atomic_load(&rpc->stopping))
                rpc->tick(rpc->tick_context);
        }
    }
    heartbeat_end(&rpc->heartbeat);
    return NULL;
}

/* gRPC has no public way to post to a queue; an empty batch on a call that never starts completes at once. */
static void prepare_wake(struct rpc *rpc)
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

int64_t rpc_read_until_ms(const struct rpc *rpc)
{
    return rpc->read_until_ms;
}

void rpc_start_ticks(struct rpc *rpc)
{
    atomic_store(&rpc->ticks, true);
}

int rpc_new(rpc_tick *tick, void *context, int64_t tick_ms, struct rpc **ret_rpc, struct error *error)
{
    rpc_log_set_up();
    grpc_init();
    struct rpc *rpc = memory_allocate(1, sizeof(*rpc));
    rpc->tick = tick;
    rpc->tick_context = context;
    rpc->tick_ms = tick_ms > 0 ? tick_ms : 1000;
    pthread_mutex_init(&rpc->lock, NULL);
    rpc->queue = grpc_completion_queue_create_for_next(NULL);
    prepare_wake(rpc);
    if (rpc_connections_start(&rpc->connections, error) < 0) {
        rpc_free(rpc);
        return -1;
    }
    errno = pthread_create(&rpc->thread, NULL, run, rpc);
    rpc->has_thread = errno == 0;
    if (!rpc->has_thread) {
        error_set_errno(error, "cannot start the thread for messages");
        rpc_free(rpc);
        return -1;
    }
    *ret_rpc = rpc;
    return 0;
}

static void drain(struct rpc *rpc)
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
    drain(rpc);
    while (rpc->servers != NULL) {
        struct rpc_server *server = rpc->servers;
        rpc->servers = server->next;
        grpc_server_destroy(server->server);
        free(server);
    }
    rpc_connections_free(rpc->connections);
    grpc_completion_queue_destroy(rpc->queue);
    pthread_mutex_destroy(&rpc->lock);
    free(rpc);
    grpc_shutdown();
}
