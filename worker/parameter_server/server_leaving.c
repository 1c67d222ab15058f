/* SPDX-License-Identifier: Apache-2.0 */
#include "common/clock.h"
#include "worker/parameter_server/server_parts.h"

/* Well within a pod's grace period; long enough for a chief that is about to connect. */
#define LEAVE_MS_DEFAULT 15000
/* Time to wait for a chief if there is nothing to save. */
#define UNLED_MS 2000

void ps_server_leave(struct ps_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->leaving = true;
    pthread_mutex_unlock(&server->lock);
    rpc_wake(server->rpc);
}

/* Longer while this server writes a shard: leaving then would fail the save of all servers. */
static int64_t leave_ms(const struct ps_server *server)
{
    int64_t ms = server->options.leave_ms > 0 ? server->options.leave_ms : LEAVE_MS_DEFAULT;
    return server->store.busy ? ms + ms / 2 : ms;
}

static bool is_asked(struct ps_server *server)
{
    pthread_mutex_lock(&server->lock);
    bool leaving = server->leaving;
    pthread_mutex_unlock(&server->lock);
    return leaving;
}

/* Stops acknowledging: what is acknowledged from here on would be lost with this process a moment
 * later. This also holds while it loads its first state. */
static void freeze(struct ps_server *server)
{
    server->frozen = true;
    server_exchange_close(server);
}

static void go(struct ps_server *server)
{
    freeze(server);
    ps_server_cancel(server);
}

void server_leaving_freeze(struct ps_server *server)
{
    if (server->asked_ms != 0 && !server->frozen)
        freeze(server);
}

void server_leaving_done(struct ps_server *server, bool is_saved)
{
    if (server->asked_ms == 0)
        return;
    server->dismissed = true;
    if (is_saved)
        go(server);
}

void server_leaving_tell(struct ps_server *server)
{
    if (server->asked_ms != 0 && !server->dismissed && server->control != NULL)
        ps_message_send(server->control->stream, &(struct ps_message){.type = PS_LEAVING});
}

static void begin(struct ps_server *server, int64_t now_ms)
{
    server->asked_ms = now_ms;
    if (server->variables.holds_state)
        server_leaving_tell(server);
    else
        go(server);
}

static bool needs_no_save(const struct ps_server *server)
{
    return server->variables.updates == server->saved_updates || server->options.never_saved;
}

void server_leaving_tick(struct ps_server *server)
{
    int64_t now_ms = clock_monotonic_ms();
    if (!is_asked(server))
        return;
    if (server->asked_ms == 0)
        begin(server, now_ms);
    bool unled = server->control == NULL && needs_no_save(server) && now_ms - server->unled_since_ms > UNLED_MS;
    if (unled || server->dismissed || now_ms - server->asked_ms > leave_ms(server))
        go(server);
}
