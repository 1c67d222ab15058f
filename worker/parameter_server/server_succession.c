/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "common/clock.h"
#include "worker/parameter_server/server_parts.h"

/* Usually a chief's successor connects sooner. */
#define UNLED_MS 5000

bool server_is_meant(const struct ps_server *server, struct rpc_stream *stream, const struct ps_message *message)
{
    if (message->server == server->options.variables.server)
        return true;
    rpc_stream_close(stream);
    return false;
}

bool server_is_superseded(struct ps_server *server, struct generation newest)
{
    const struct generation own = server->options.generation;
    struct error error = ERROR_INIT;
    if (generation_compare_chiefs(newest, own) <= 0)
        return false;
    error_set(&error, ERROR_STALE,
              "ps %u of attempt %u, incarnation %u, is superseded: its successor of attempt %u, incarnation %u, has "
              "its place in the "
              "crew; nothing is left to do for this process",
              server->options.variables.server, own.attempt, own.incarnation, newest.attempt, newest.incarnation);
    server->frozen = true;
    server_exchange_close(server);
    ps_server_fail(server, &error);
    return true;
}

bool server_is_of_a_past_attempt(struct ps_server *server, struct generation caller)
{
    const struct generation newest = {.attempt = caller.attempt};
    return server_is_superseded(server, newest);
}

/* Disconnects the workers if no chief is connected: the chief may be connected to our successor.
 * The workers look up where our name leads now, and wait there. */
void server_succession_tick(struct ps_server *server)
{
    int64_t now_ms = clock_monotonic_ms();
    if (server->control != NULL || now_ms - server->unled_since_ms < UNLED_MS ||
        now_ms - server->sent_away_ms < UNLED_MS)
        return;
    server->sent_away_ms = now_ms;
    server_exchange_close(server);
}
