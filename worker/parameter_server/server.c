/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/clock.h"
#include "common/memory.h"
#include "worker/parameter_server/server_parts.h"
#include "worker/parameter_server/waiting.h"

#define TICK_MS 200

void ps_server_record(struct ps_server *server, enum server_fate fate, const struct variables *variables,
                      int64_t number, const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    char own[64];
    snprintf(own, sizeof own, "ps-%u-%u", server->options.variables.server, server->options.generation.incarnation);
    if (server->options.witness)
        server->options.witness(server->options.context, fate, variables->lineage, number,
                                path == NULL ? own
                                : slash      ? slash + 1
                                             : path);
}

void ps_server_fail(struct ps_server *server, const struct error *error)
{
    pthread_mutex_lock(&server->lock);
    if (server->fatal.kind == ERROR_NONE)
        server->fatal = *error;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

bool ps_server_is_long(const struct ps_server *server, int64_t since_ms, bool is_there)
{
    return clock_monotonic_ms() - since_ms >= waiting_patience_ms(server->options.patience_ms, is_there);
}

static void tell_waits(struct ps_server *server)
{
    char text[PS_TEXT_MAX] = "";
    if (server->control == NULL && ps_server_is_long(server, server->unled_since_ms, false))
        snprintf(text, sizeof text, "waiting for the chief");
    if (strcmp(text, server->waiting) == 0)
        return;
    snprintf(server->waiting, sizeof server->waiting, "%s", text);
    if (server->options.waits)
        server->options.waits(server->options.context, text);
}

static void tick(void *context)
{
    struct ps_server *server = context;
    server_exchange_tick(server);
    server_control_tick(server);
    server_succession_tick(server);
    server_store_tick(server);
    server_leaving_tick(server);
    tell_waits(server);
}

static const struct rpc_method methods[] = {
    {PS_METHOD_EXCHANGE, server_exchange_opened},
    {PS_METHOD_CONTROL, server_control_opened},
};

static void wake(void *context)
{
    rpc_wake(((struct ps_server *)context)->rpc);
}

static int open_connections(struct ps_server *server, struct error *error)
{
    const struct bulk_connections_options options = {.job_uid = server->job_uid,
                                                     .listens = true,
                                                     .listen_address = server->options.listen_address,
                                                     .port = server->options.data_port,
                                                     .wake = wake,
                                                     .context = server};
    bool is_large = (size_t)server->variables.elements * sizeof(float) >= BULK_CONNECTION_LOAD_MIN;
    return is_large ? bulk_connections_start(&options, &server->connections, error) : 0;
}

static int open_door(struct ps_server *server, struct error *error)
{
    const struct ps_server_options *options = &server->options;
    if (variables_init(&server->variables, &options->variables, error) < 0 ||
        rpc_new(tick, server, TICK_MS, &server->rpc, error) < 0 || server_store_start(server, error) < 0 ||
        open_connections(server, error) < 0)
        return -1;
    if (rpc_server_start(server->rpc, options->listen_address, options->port, methods, sizeof methods / sizeof *methods,
                         server, &server->listener, error) < 0)
        return -1;
    rpc_start_ticks(server->rpc);
    return 0;
}

int ps_server_start(const struct ps_server_options *options, struct ps_server **ret_server, struct error *error)
{
    struct ps_server *server = memory_allocate(1, sizeof *server);
    server->options = *options;
    server->job_uid = memory_copy_string(options->job_uid);
    server->chief.attempt = options->generation.attempt;
    server->unled_since_ms = clock_monotonic_ms();
    server->saved_updates = -1;
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->changed, NULL);
    if (getrandom(&server->nonce, sizeof server->nonce, 0) < 0)
        server->nonce = (uint64_t)clock_monotonic_ns();
    if (open_door(server, error) < 0) {
        ps_server_free(server);
        return -1;
    }
    *ret_server = server;
    return 0;
}

uint16_t ps_server_port(const struct ps_server *server)
{
    return rpc_server_port(server->listener);
}

int ps_server_wait(struct ps_server *server, struct error *error)
{
    int result = 0;
    pthread_mutex_lock(&server->lock);
    while (!server->over && !server->cancelled && server->fatal.kind == ERROR_NONE)
        pthread_cond_wait(&server->changed, &server->lock);
    if (server->fatal.kind != ERROR_NONE)
        result = error_set(error, server->fatal.kind, "%s", server->fatal.message);
    else if (!server->over)
        result = error_set(error, ERROR_CANCELLED, "this ps has left on request; the crew waits for its replacement");
    pthread_mutex_unlock(&server->lock);
    return result;
}

void ps_server_cancel(struct ps_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->cancelled = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

void ps_server_free(struct ps_server *server)
{
    if (server == NULL)
        return;
    if (server->rpc)
        rpc_stop(server->rpc);
    server_store_stop(server);
    bulk_connections_free(server->connections);
    if (server->rpc)
        rpc_free(server->rpc);
    for (unsigned i = 0; i < PS_WORKERS_MAX; i++)
        free(server->outgoing[i]);
    variables_release(&server->variables);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    free(server->job_uid);
    free(server);
}

struct ps_server_counts ps_server_counts(struct ps_server *server)
{
    return server->counts;
}
