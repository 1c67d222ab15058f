/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/memory.h"
#include "worker/comm/rpc_connections_parts.h"
#include "worker/comm/strangers.h"

/* How long bytes that gRPC has written may take to leave after it has closed its end. */
#define LINGER_NS (5000 * 1000000LL)
/* Turns of copying that one connection has before others have theirs. */
#define TURNS 8

bool connection_is_stranger(const struct connection *connection)
{
    return connection->listener != NULL && connection->state < CONNECTION_OPEN;
}

void connection_end(struct connection *connection, const struct error *why)
{
    struct rpc_connections *all = connection->all;
    if (connection->state == CONNECTION_GONE)
        return;
    if (connection_is_stranger(connection)) {
        all->stranger_count--;
        if (why != NULL)
            strangers_refuse(STRANGER_CONTROL_PORT, &connection->address, why->message);
    }
    if (connection->dialled != NULL && why != NULL && connection->state < CONNECTION_OPEN) {
        pthread_mutex_lock(&connection->dialled->lock);
        connection->dialled->error = *why;
        pthread_mutex_unlock(&connection->dialled->lock);
    }
    connection->state = CONNECTION_GONE;
    connections_watch(connection->link.socket, &connection->link_watch, 0);
    connections_watch(connection->local, &connection->local_watch, 0);
    link_release(&connection->link);
    if (connection->local >= 0)
        close(connection->local);
    connection->local = -1;
}

/* ---------------------------------------------------------------- opening */

int connection_connect_failed(int os_error, struct error *error)
{
    enum error_kind kind = os_error == ECONNREFUSED ? ERROR_NOT_FOUND : ERROR_UNAVAILABLE;
    return error_set(error, kind, "connect: %s", strerror(os_error));
}

static int connect_further(struct connection *connection, struct error *error)
{
    int failure = 0;
    socklen_t size = sizeof failure;
    if (getsockopt(connection->link.socket, SOL_SOCKET, SO_ERROR, &failure, &size) < 0 || failure != 0)
        return connection_connect_failed(failure, error);
    connection->state = CONNECTION_SECURING;
    return 1;
}

/* A session, which is large, is made only for a connection that has something to say. */
static int secure_further(struct connection *connection, struct error *error)
{
    struct link *link = &connection->link;
    bool answers = connection->listener != NULL;
    if (link->tls == NULL) {
        if (tls_session_new(link->socket, answers, &link->tls, error) < 0)
            return -1;
        tls_session_read_ahead(link->tls);
    }
    int secured = tls_session_handshake(link->tls, error);
    if (secured <= 0)
        return secured;
    if (tls_session_binding(link->tls, connection->binding, error) < 0)
        return -1;
    if (!answers)
        crew_hello_encode(&connection->hello, connection->binding, connection->said);
    connection->state = CONNECTION_GREETING;
    return 1;
}

/* 1: all of `bytes` has been written (or read). */
static int move_whole(struct connection *connection, bool writes, void *bytes, size_t length, size_t *done,
                      struct error *error)
{
    bool closed = false;
    while (*done < length) {
        struct iovec rest = {(unsigned char *)bytes + *done, length - *done};
        size_t moved = writes ? tls_session_write(connection->link.tls, &rest, 1, &closed)
                              : tls_session_read(connection->link.tls, rest.iov_base, rest.iov_len, &closed);
        if (closed)
            return error_set(error, ERROR_UNAVAILABLE, "the other side closed the connection during its hello");
        if (moved == 0)
            return 0;
        *done += moved;
    }
    return 1;
}

/* It is no stranger any more, so that no descriptor that is freed for it is its own. */
static int open_now(struct connection *connection, struct error *error)
{
    int ends[2];
    connection->state = CONNECTION_OPEN;
    connection->until_ns = 0;
    connections_watch(connection->link.socket, &connection->link_watch, 0);
    connection->link_watch.epoll = &connection->all->members;
    connection->to_peer = memory_allocate(1, sizeof(struct flow));
    connection->to_grpc = memory_allocate(1, sizeof(struct flow));
    if (connection->listener == NULL)
        return 1;
    connection->all->stranger_count--;
    while (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0)
        if ((errno != EMFILE && errno != ENFILE) || !rpc_listener_evict_oldest(connection->all))
            return error_set_errno(error, "open a pair of sockets");
    connection->local = ends[0];
    connection->listener->accepted(connection->listener->context, ends[1]);
    return 1;
}

static int receive_hello(struct connection *connection, struct error *error)
{
    int heard = move_whole(connection, false, connection->said, CREW_HELLO_BYTES, &connection->said_bytes, error);
    if (heard <= 0)
        return heard;
    int known = crew_hello_decode(connection->said, connection->binding, &connection->hello, error);
    crew_hello_answer_encode(known == 0, connection->said, connection->binding, connection->answer);
    int answered = move_whole(connection, true, connection->answer, CREW_HELLO_ANSWER_BYTES, &connection->answer_bytes,
                              known == 0 ? error : NULL);
    if (known < 0)
        return -1;
    return answered <= 0 ? answered : open_now(connection, error);
}

static int send_hello(struct connection *connection, struct error *error)
{
    int said = move_whole(connection, true, connection->said, CREW_HELLO_BYTES, &connection->said_bytes, error);
    if (said <= 0)
        return said;
    int heard =
        move_whole(connection, false, connection->answer, CREW_HELLO_ANSWER_BYTES, &connection->answer_bytes, error);
    if (heard <= 0)
        return heard;
    if (crew_hello_answer_check(connection->answer, connection->said, connection->binding, error) < 0)
        return -1;
    return open_now(connection, error);
}

/* 1: something has changed, go on; 0: wait; -1: it fails. */
static int open_further(struct connection *connection, struct error *error)
{
    switch (connection->state) {
    case CONNECTION_CONNECTING:
        return connect_further(connection, error);
    case CONNECTION_SECURING:
        return secure_further(connection, error);
    default:
        return connection->listener != NULL ? receive_hello(connection, error) : send_hello(connection, error);
    }
}

/* ---------------------------------------------------------------- carrying bytes */

static void flow_take(struct flow *flow, size_t length)
{
    flow->start += length;
    if (flow->start == flow->end)
        flow->start = flow->end = 0;
}

/* From gRPC to the network. Whatever is left there afterwards, epoll tells of it. */
static void carry_out(struct connection *connection)
{
    struct flow *flow = connection->to_peer;
    bool full = true; /* the last look at gRPC's end found as much as there is room for */
    for (unsigned turn = 0; full && turn < TURNS; turn++) {
        if (flow_length(flow) == 0 && !connection->grpc_ended) {
            ssize_t got = recv(connection->local, flow->bytes, FLOW_BYTES, MSG_DONTWAIT);
            if (got > 0)
                flow->end = (size_t)got;
            else if (got == 0 || (errno != EAGAIN && errno != EINTR))
                connection->grpc_ended = true;
        }
        full = flow->start == 0 && flow->end == FLOW_BYTES;
        for (size_t written = 1; written > 0 && flow_length(flow) > 0 && !connection->peer_ended;) {
            struct iovec part = {flow->bytes + flow->start, flow_length(flow)};
            written = tls_session_write(connection->link.tls, &part, 1, &connection->peer_ended);
            flow_take(flow, written);
        }
        full = full && flow_length(flow) == 0;
    }
}

/* Fills the empty flow with what has come. */
static void read_peer(struct connection *connection, struct flow *flow)
{
    size_t got;
    do {
        got = tls_session_read(connection->link.tls, flow->bytes + flow->end, FLOW_BYTES - flow->end,
                               &connection->peer_ended);
        flow->end += got;
    } while (got > 0 && flow->end < FLOW_BYTES && !connection->peer_ended &&
             tls_session_has_unread(connection->link.tls));
}

/* From the network to gRPC. Returns true when there may be more to copy, for which no event would come. */
static bool carry_in(struct connection *connection)
{
    struct flow *flow = connection->to_grpc;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        if (flow_length(flow) == 0 && !connection->peer_ended)
            read_peer(connection, flow);
        if (flow_length(flow) == 0)
            return false;
        ssize_t sent =
            send(connection->local, flow->bytes + flow->start, flow_length(flow), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0)
            flow_take(flow, (size_t)sent);
        else if (sent < 0 && errno != EAGAIN && errno != EINTR)
            flow_take(flow, flow_length(flow)); /* gRPC has gone and wants nothing more */
        if (flow_length(flow) > 0 || (!connection->peer_ended && !tls_session_has_unread(connection->link.tls)))
            return false;
    }
    return true;
}

/* `out`, `in`: which way something may be carried. Returns as carry_in. */
static bool carry(struct connection *connection, bool out, bool in)
{
    if (out)
        carry_out(connection);
    bool more = in && carry_in(connection);
    bool nothing_for_peer = connection->peer_ended || flow_length(connection->to_peer) == 0;
    if ((connection->grpc_ended && nothing_for_peer) ||
        (connection->peer_ended && flow_length(connection->to_grpc) == 0))
        connection_end(connection, NULL);
    return more;
}

/* ---------------------------------------------------------------- events */

static void watch_opening(struct connection *connection)
{
    struct link *link = &connection->link;
    bool writes = connection->state == CONNECTION_GREETING &&
                  (connection->listener == NULL ? connection->said_bytes < CREW_HELLO_BYTES
                                                : connection->said_bytes == CREW_HELLO_BYTES);
    short wanted = POLLIN;
    if (connection->state == CONNECTION_CONNECTING)
        wanted = POLLOUT;
    else if (link->tls != NULL)
        wanted = tls_session_events(link->tls, true, writes);
    connections_watch(link->socket, &connection->link_watch,
                      (wanted & POLLIN ? EPOLLIN : 0u) | (wanted & POLLOUT ? EPOLLOUT : 0u));
}

/* What cannot be used now is not waited for, or its events would never cease. */
static void watch_open(struct connection *connection, bool more)
{
    size_t out = flow_length(connection->to_peer), in = flow_length(connection->to_grpc);
    uint32_t link = (in == 0 && !connection->peer_ended ? EPOLLIN : 0u) | (out > 0 || more ? EPOLLOUT : 0u);
    uint32_t local = (in > 0 ? EPOLLOUT : 0u);
    if (!connection->grpc_ended)
        local |= (connection->until_ns == 0 ? EPOLLRDHUP : 0u) | (out == 0 ? EPOLLIN : 0u);
    connections_watch(connection->link.socket, &connection->link_watch, link);
    connections_watch(connection->local, &connection->local_watch, local);
}

static void advance(struct connection *connection, bool out, bool in)
{
    struct error error = ERROR_INIT;
    int further = 1;
    out |= connection->state < CONNECTION_OPEN;
    in |= connection->state < CONNECTION_OPEN;
    while (further > 0 && connection->state < CONNECTION_OPEN)
        further = open_further(connection, &error);
    if (further < 0) {
        connection_end(connection, &error);
        return;
    }
    bool more = connection->state == CONNECTION_OPEN && carry(connection, out, in);
    if (connection->state == CONNECTION_OPEN)
        watch_open(connection, more);
    else if (connection->state != CONNECTION_GONE)
        watch_opening(connection);
}

void connection_on_link(void *owner, uint32_t events)
{
    struct connection *connection = owner;
    bool room = (events & EPOLLOUT) != 0; /* or there is more (watch_open) */
    advance(connection, room, (events & ~(uint32_t)EPOLLOUT) != 0 || room);
}

/* gRPC's end may close while this side waits for something else. */
void connection_on_local(void *owner, uint32_t events)
{
    struct connection *connection = owner;
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0 && connection->until_ns == 0)
        connection->until_ns = clock_monotonic_ns() + LINGER_NS;
    if (connection->state == CONNECTION_OPEN)
        advance(connection, (events & ~(uint32_t)EPOLLOUT) != 0, (events & EPOLLOUT) != 0);
    else if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
        connection_end(connection, NULL);
}
