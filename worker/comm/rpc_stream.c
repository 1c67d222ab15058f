/* SPDX-License-Identifier: Apache-2.0 */
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <string.h>
#include <sys/random.h>

#include "common/memory.h"
#include "common/scope.h"
#include "worker/comm/rpc_parts.h"
#include "worker/comm/traffic.h"

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

void rpc_stream_batch(struct rpc_stream *stream, const grpc_op *operations, size_t count, struct completion *tag)
{
    stream->outstanding++;
    stream->rpc->has_written = true;
    if (grpc_call_start_batch(stream->call, operations, count, tag, NULL) != GRPC_CALL_OK)
        abort();
}

void rpc_stream_receive(struct rpc_stream *stream)
{
    grpc_op operation = {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &stream->incoming};
    rpc_stream_batch(stream, &operation, 1, &stream->received);
}

static void stream_send_status(struct rpc_stream *stream)
{
    stream->status_sent = true;
    grpc_op operation = {.op = GRPC_OP_SEND_STATUS_FROM_SERVER, .data.send_status_from_server.status = GRPC_STATUS_OK};
    rpc_stream_batch(stream, &operation, 1, &stream->status_flushed);
}

static void stream_pump(struct rpc_stream *stream)
{
    if (stream->sending || stream->ended || stream->status_sent)
        return;
    if (stream->queue != NULL) {
        grpc_op operation = {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = stream->queue->payload};
        stream->sending = true;
        rpc_stream_batch(stream, &operation, 1, &stream->sent);
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
            rpc_stream_receive(stream);
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

struct rpc_stream *rpc_stream_new(struct rpc *rpc, grpc_call *call, bool is_server)
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
    grpc_channel_args arguments = {.num_args = rpc_client_arguments(list), .args = list};
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
    rpc_stream_batch(stream, opening, 2, &stream->opened);
    grpc_slice_unref(connection.value);
    grpc_op ending = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
                      .data.recv_status_on_client = {.trailing_metadata = &stream->trailing_metadata,
                                                     .status = &stream->status,
                                                     .status_details = &stream->details}};
    rpc_stream_batch(stream, &ending, 1, &stream->finished);
    rpc_stream_receive(stream);
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
    struct rpc_stream *stream = rpc_stream_new(rpc, call, false);
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
