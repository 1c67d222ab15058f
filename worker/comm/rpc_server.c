/* SPDX-License-Identifier: Apache-2.0 */
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <string.h>

#include "common/memory.h"
#include "worker/comm/rpc_parts.h"

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
    rpc_stream_batch(stream, operations, 2, &stream->opened);
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
    struct rpc_stream *stream = rpc_stream_new(server->rpc, server->call, true);
    server->call = NULL;
    grpc_op ending = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER, .data.recv_close_on_server.cancelled = &stream->cancelled};
    rpc_stream_batch(stream, &ending, 1, &stream->finished);
    stream->has_caller = find_caller(server, &stream->caller);
    if (method == NULL || !stream->has_caller) {
        server_refuse(stream, method == NULL ? GRPC_STATUS_UNIMPLEMENTED : GRPC_STATUS_UNAUTHENTICATED);
        return;
    }
    grpc_op opening = {.op = GRPC_OP_SEND_INITIAL_METADATA};
    rpc_stream_batch(stream, &opening, 1, &stream->opened);
    method->opened(server->context, stream, &stream->events, &stream->context);
    rpc_stream_receive(stream);
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
    grpc_channel_args arguments = {.num_args = rpc_server_arguments(list), .args = list};
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

void rpc_server_stop(struct rpc_server *server)
{
    server->rpc->servers_running++;
    rpc_connections_shut(server->rpc->connections, server);
    grpc_server_shutdown_and_notify(server->server, server->rpc->queue, &server->stopped);
    grpc_server_cancel_all_calls(server->server);
}
