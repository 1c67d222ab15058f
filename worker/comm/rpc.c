/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/rpc.h"

#include <errno.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>

#include "common/clock.h"
#include "common/memory.h"
#include "worker/comm/rpc_parts.h"

static void rpc_stop_servers(struct rpc *rpc)
{
    rpc->servers_stopped = true;
    pthread_mutex_lock(&rpc->lock);
    for (struct rpc_server *server = rpc->servers; server != NULL; server = server->next)
        rpc_server_stop(server);
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
    rpc_connections_block_signals();
    heartbeat_start(&rpc->heartbeat, "hears messages");
    while (!atomic_load(&rpc->stopping) || !rpc_wind_down(rpc)) {
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
    rpc_prepare_wake(rpc);
    if (rpc_connections_start(&rpc->connections, error) < 0) {
        rpc_free(rpc);
        return -1;
    }
    errno = pthread_create(&rpc->thread, NULL, rpc_run, rpc);
    rpc->has_thread = errno == 0;
    if (!rpc->has_thread) {
        error_set_errno(error, "cannot start the thread for messages");
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
    rpc_connections_free(rpc->connections);
    grpc_completion_queue_destroy(rpc->queue);
    pthread_mutex_destroy(&rpc->lock);
    free(rpc);
    grpc_shutdown();
}
