/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "worker/comm/bulk_connection_parts.h"

/* A connection is cut after this long with unacknowledged bytes, or if an idle peer does not answer. */
#define CUT_MS 30000
#define PROBE_S 10

static void set_option(int socket, int level, int name, int value)
{
    setsockopt(socket, level, name, &value, sizeof value);
}

static void notice_cuts(int socket)
{
    set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, CUT_MS);
    set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, PROBE_S);
    set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, PROBE_S);
}

/* ---------------------------------------------------------------- dialling */

struct bulk_connection *bulk_connection_dial(struct bulk_connections *connections, const char *address, uint16_t port,
                                             uint64_t token)
{
    struct bulk_connection *connection = connection_new(connections, token);
    connection->until_ns = clock_monotonic_ns() + HANDSHAKE_NS;
    handshake_dial(&connection->handshake, &connection->link, address, port);
    connection->phase = connection->handshake.phase == HANDSHAKE_FAILED ? BULK_CLOSED : BULK_DIALLING;
    if (connection->phase == BULK_DIALLING)
        notice_cuts(connection->link.socket);
    connection_enter(connection);
    return connection;
}

void connection_open_further(struct bulk_connection *connection, bool ready)
{
    struct handshake *handshake = &connection->handshake;
    if (ready)
        handshake_advance(handshake, &connection->link, NULL);
    if (handshake->phase == HANDSHAKE_GREET) {
        struct greeting greeting = {.nonce = connection->token};
        snprintf(greeting.job_uid, sizeof greeting.job_uid, "%s", connection->connections->job_uid);
        handshake_greet(handshake, &connection->link, &greeting);
    }
    if (handshake->phase == HANDSHAKE_ANSWERED && handshake->answer == ANSWER_TCP)
        connection_set_phase(connection, BULK_OPEN);
    else if (handshake->phase == HANDSHAKE_ANSWERED || handshake->phase == HANDSHAKE_FAILED ||
             clock_monotonic_ns() >= connection->until_ns)
        connection_set_phase(connection, BULK_CLOSED);
}

/* ---------------------------------------------------------------- being dialled */

struct bulk_connection *bulk_connection_expect(struct bulk_connections *connections, uint64_t *ret_token)
{
    uint64_t token = 0;
    if (getrandom(&token, sizeof token, 0) != sizeof token)
        token = (uint64_t)clock_monotonic_ns();
    struct bulk_connection *connection = connection_new(connections, token);
    connection_enter(connection);
    *ret_token = token;
    return connection;
}

/* A token is good for one connection. */
static bool seat(struct bulk_connection *connection, struct arrival *arrival)
{
    pthread_mutex_lock(&connection->lock);
    bool is_its =
        connection->phase == BULK_WAITING && !connection->dropped && connection->token == arrival->greeting.nonce;
    if (is_its) {
        notice_cuts(arrival->link.socket);
        arrival_answer(arrival, ANSWER_TCP);
        connection->link = arrival->link;
        link_init(&arrival->link);
        connection_set_phase(connection, BULK_OPEN);
    }
    pthread_mutex_unlock(&connection->lock);
    return is_its;
}

void connections_take_arrivals(struct bulk_connections *connections)
{
    const struct generation any = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
    struct arrival arrival;
    while (endpoint_take(connections->endpoint, any, &arrival)) {
        bool is_ours = strcmp(arrival.greeting.job_uid, connections->job_uid) == 0, seated = false;
        pthread_mutex_lock(&connections->lock);
        for (struct bulk_connection *connection = connections->first; connection != NULL && is_ours && !seated;
             connection = connection->next)
            seated = seat(connection, &arrival);
        pthread_mutex_unlock(&connections->lock);
        if (!seated)
            arrival_answer(&arrival, ANSWER_REFUSED);
        link_release(&arrival.link); /* unless it has a seat now */
    }
}
