/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/rpc_connections.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/lock.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/comm/crew_listener.h"
#include "worker/comm/heartbeat.h"
#include "worker/comm/link.h"
#include "worker/comm/socket_address.h"
#include "worker/comm/strangers.h"

#define MEMBER_EVENTS_MAX 256
/* Handshakes cost time: open connections have another turn after so many. */
#define EVENTS_MAX 16
/* How often deadlines are looked at. */
#define LOOK_MS 100
#define LAST_BYTES_NS (1000 * 1000000LL)
/* How long bytes that gRPC has written may take to leave after it has closed its end. */
#define LINGER_NS (5000 * 1000000LL)
/* Turns of copying that one connection has before others have theirs. */
#define TURNS 8
/* How long nothing is accepted when there was no descriptor or memory for a connection. */
#define PAUSE_NS (100 * 1000000LL)
/* Connections that are accepted before others have their turn. */
#define ACCEPTED_AT_ONCE 64

/* Everything happens with the lock held, on the connections' thread; open connections are also served on the rpc's
 * thread (rpc_connections_carry). Only the connections' thread frees them. */

/* A descriptor that the thread waits for. */
struct watch {
    void (*ready)(void *owner, uint32_t events);
    void *owner;
    int *epoll;      /* the set that it belongs to */
    uint32_t events; /* 0: not in the set now */
};

/* Bytes that were read from one side (the network or gRPC) and are not yet written to the other. */
#define FLOW_BYTES ((size_t)32 * 1024)
struct flow {
    unsigned char bytes[FLOW_BYTES];
    size_t start, end;
};

static size_t flow_length(const struct flow *flow)
{
    return flow->end - flow->start;
}

/* Shared by a stream and its connection; counts both. */
struct rpc_dialled {
    pthread_mutex_t lock;
    unsigned references;
    struct error error;
};

enum connection_state {
    CONNECTION_CONNECTING, /* dialled only */
    CONNECTION_SECURING,   /* TLS handshake */
    CONNECTION_GREETING,   /* the caller's hello and its answer */
    CONNECTION_OPEN,
    CONNECTION_GONE /* freed once the events at hand are handled */
};

struct connection {
    struct connection *next;
    struct rpc_connections *all;
    enum connection_state state;
    struct link
        link;  /* its socket and TLS session; bytes do not go through link_read, which counts them as bulk data */
    int local; /* our end of gRPC's socket pair; -1: none yet */
    struct watch link_watch, local_watch;
    int64_t until_ns;            /* when the connection fails unless it is open by then; 0: never */
    bool peer_ended, grpc_ended; /* no more bytes will come from the peer, from gRPC */

    struct rpc_dialled *dialled;   /* NULL: accepted */
    struct rpc_listener *listener; /* NULL: dialled */
    union socket_address address;  /* of the other side, where it was accepted */

    struct crew_hello hello;                                          /* of the caller */
    unsigned char said[CREW_HELLO_BYTES], binding[TLS_BINDING_BYTES]; /* `said`: the hello as it is sent */
    unsigned char answer[CREW_HELLO_ANSWER_BYTES];
    size_t said_bytes, answer_bytes; /* how many bytes of `said` and `answer` are sent or received */
    struct flow *to_peer, *to_grpc;  /* NULL until the connection is open */
};

struct rpc_listener {
    struct rpc_listener *next;
    struct rpc_connections *all;
    int descriptor; /* -1: shut */
    struct watch watch;
    int64_t pause_until_ns; /* accept no connection before: there was no descriptor or memory for the last one */
    rpc_accepted *accepted;
    void *context;
};

struct rpc_connections {
    pthread_t thread;
    struct heartbeat heartbeat;
    pthread_mutex_t lock;
    int epoll;   /* the epoll set of all descriptors, `members` included */
    int members; /* an epoll set of the open connections alone, which are served before strangers */
    int bell;    /* an eventfd by which other threads wake this one */
    struct watch bell_watch;
    int spare; /* a descriptor that is closed for a moment when a connection must be accepted and no other is left */
    bool stopping;
    atomic_bool busy; /* bytes of open connections may be between the network and gRPC */
    struct connection *first, **end;
    unsigned stranger_count, strangers_max;
    struct rpc_listener *listeners;
};

static void watch_descriptor(int descriptor, struct watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    if (descriptor < 0 || watch->events == events)
        return;
    int operation = events == 0 ? EPOLL_CTL_DEL : watch->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    watch->events = events;
    (void)epoll_ctl(*watch->epoll, operation, descriptor, &event);
}

static bool is_stranger(const struct connection *connection)
{
    return connection->listener != NULL && connection->state < CONNECTION_OPEN;
}

/* Closes the connection. The reason `why` (may be NULL) becomes the result of rpc_dialled_result if this side dialled, and
 * is logged if the connection was a stranger's. */
static void end_connection(struct connection *connection, const struct error *why)
{
    struct rpc_connections *all = connection->all;
    if (connection->state == CONNECTION_GONE)
        return;
    if (is_stranger(connection)) {
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
    watch_descriptor(connection->link.socket, &connection->link_watch, 0);
    watch_descriptor(connection->local, &connection->local_watch, 0);
    link_release(&connection->link);
    if (connection->local >= 0)
        close(connection->local);
    connection->local = -1;
}

/* Of the address with the most strangers: its oldest that has not said a word, else its oldest. */
static struct connection *choose_victim(struct rpc_connections *all)
{
    struct connection *victim = NULL;
    unsigned most = 0;
    for (struct connection *one = all->first; one != NULL; one = one->next) {
        unsigned same = 0;
        struct connection *oldest = NULL, *silent = NULL;
        if (!is_stranger(one))
            continue;
        for (struct connection *other = all->first; other != NULL; other = other->next) {
            if (!is_stranger(other) || !socket_address_same_host(&one->address, &other->address))
                continue;
            same++;
            oldest = oldest != NULL ? oldest : other;
            silent = silent != NULL || other->link.tls != NULL ? silent : other;
        }
        if (same > most)
            victim = silent != NULL ? silent : oldest;
        most = same > most ? same : most;
        if (2 * most >= all->stranger_count)
            break; /* no other address can have more */
    }
    return victim;
}

/* Closes the oldest stranger, to free its descriptor. Returns false if there is no stranger. */
static bool evict_oldest(struct rpc_connections *all)
{
    struct connection *victim = choose_victim(all);
    if (victim == NULL)
        return false;
    strangers_evict(STRANGER_CONTROL_PORT, &victim->address);
    end_connection(victim, NULL);
    return true;
}

/* ---------------------------------------------------------------- opening */

/* Sets `error` to why connect(2) failed. Returns -1. */
static int connect_failed(int os_error, struct error *error)
{
    enum error_kind kind = os_error == ECONNREFUSED ? ERROR_NOT_FOUND : ERROR_UNAVAILABLE;
    return error_set(error, kind, "connect: %s", strerror(os_error));
}

static int connect_further(struct connection *connection, struct error *error)
{
    int failure = 0;
    socklen_t size = sizeof failure;
    if (getsockopt(connection->link.socket, SOL_SOCKET, SO_ERROR, &failure, &size) < 0 || failure != 0)
        return connect_failed(failure, error);
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
    watch_descriptor(connection->link.socket, &connection->link_watch, 0);
    connection->link_watch.epoll = &connection->all->members;
    connection->to_peer = memory_allocate(1, sizeof(struct flow));
    connection->to_grpc = memory_allocate(1, sizeof(struct flow));
    if (connection->listener == NULL)
        return 1;
    connection->all->stranger_count--;
    while (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0)
        if ((errno != EMFILE && errno != ENFILE) || !evict_oldest(connection->all))
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
        end_connection(connection, NULL);
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
    watch_descriptor(link->socket, &connection->link_watch,
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
    watch_descriptor(connection->link.socket, &connection->link_watch, link);
    watch_descriptor(connection->local, &connection->local_watch, local);
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
        end_connection(connection, &error);
        return;
    }
    bool more = connection->state == CONNECTION_OPEN && carry(connection, out, in);
    if (connection->state == CONNECTION_OPEN)
        watch_open(connection, more);
    else if (connection->state != CONNECTION_GONE)
        watch_opening(connection);
}

/* The connection's socket is ready: moves all bytes that can be moved without waiting. */
static void on_link(void *owner, uint32_t events)
{
    struct connection *connection = owner;
    bool room = (events & EPOLLOUT) != 0; /* or there is more (watch_open) */
    advance(connection, room, (events & ~(uint32_t)EPOLLOUT) != 0 || room);
}

/* The same for our end of gRPC's socket pair. gRPC's end may close while this side waits for something else. */
static void on_local(void *owner, uint32_t events)
{
    struct connection *connection = owner;
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0 && connection->until_ns == 0)
        connection->until_ns = clock_monotonic_ns() + LINGER_NS;
    if (connection->state == CONNECTION_OPEN)
        advance(connection, (events & ~(uint32_t)EPOLLOUT) != 0, (events & EPOLLOUT) != 0);
    else if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
        end_connection(connection, NULL);
}

static void add_connection(struct rpc_connections *all, struct connection *connection)
{
    connection->all = all;
    connection->link_watch = (struct watch){.ready = on_link, .owner = connection, .epoll = &all->epoll};
    connection->local_watch = (struct watch){.ready = on_local, .owner = connection, .epoll = &all->members};
    *all->end = connection;
    all->end = &connection->next;
}

/* ---------------------------------------------------------------- listening */

/* Without a descriptor to be had, whoever knocks is turned away with the spare one: left in the queue, it would keep out who comes
 * after it. */
static void refuse_connection(struct rpc_listener *listener)
{
    struct rpc_connections *all = listener->all;
    union socket_address address = {0};
    socklen_t size = sizeof address;
    if (all->spare >= 0)
        close(all->spare);
    int socket = accept4(listener->descriptor, &address.any, &size, SOCK_CLOEXEC);
    if (socket >= 0) {
        strangers_evict(STRANGER_CONTROL_PORT, &address);
        close(socket);
    }
    all->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (socket < 0 || all->spare < 0)
        listener->pause_until_ns = clock_monotonic_ns() + PAUSE_NS;
}

static void accept_connection(struct rpc_listener *listener, int socket, const union socket_address *address)
{
    int on = 1;
    struct rpc_connections *all = listener->all;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (all->stranger_count >= all->strangers_max)
        evict_oldest(all);
    struct connection *connection = memory_allocate(1, sizeof(*connection));
    *connection = (struct connection){.state = CONNECTION_SECURING,
                                      .link = {.socket = socket},
                                      .local = -1,
                                      .until_ns = clock_monotonic_ns() + STRANGER_MS * 1000000LL,
                                      .listener = listener,
                                      .address = *address};
    all->stranger_count++;
    add_connection(all, connection);
    watch_descriptor(socket, &connection->link_watch, EPOLLIN);
}

static void listener_wait(struct rpc_listener *listener)
{
    if (listener->pause_until_ns != 0 && clock_monotonic_ns() >= listener->pause_until_ns)
        listener->pause_until_ns = 0;
    watch_descriptor(listener->descriptor, &listener->watch, listener->pause_until_ns == 0 ? EPOLLIN : 0);
}

static void listener_ready(void *owner, uint32_t events)
{
    struct rpc_listener *listener = owner;
    (void)events;
    for (unsigned taken = 0; taken < ACCEPTED_AT_ONCE && listener->descriptor >= 0 && listener->pause_until_ns == 0;
         taken++) {
        union socket_address address = {0};
        socklen_t size = sizeof address;
        int socket = accept4(listener->descriptor, &address.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (socket >= 0)
            accept_connection(listener, socket, &address);
        else if (errno == EMFILE || errno == ENFILE) {
            if (!listener_has_callers(listener->descriptor))
                break;
            if (!evict_oldest(listener->all))
                refuse_connection(listener);
        } else if (errno == ENOBUFS || errno == ENOMEM)
            listener->pause_until_ns = clock_monotonic_ns() + PAUSE_NS;
        else if (errno == EAGAIN)
            break;
    }
    listener_wait(listener);
}

static void listener_close(struct rpc_listener *listener)
{
    if (listener->descriptor < 0)
        return;
    watch_descriptor(listener->descriptor, &listener->watch, 0);
    close(listener->descriptor);
    listener->descriptor = -1;
    for (struct connection *one = listener->all->first; one != NULL; one = one->next)
        if (one->listener == listener && is_stranger(one))
            end_connection(one, NULL);
}

/* Without an address: of both families where IPv6 is there. */
static int bind_socket(const char *address, uint16_t port, union socket_address *ret_where, struct error *error)
{
    int on = 1, off = 0;
    bool anywhere = address == NULL || *address == '\0';
    for (int family = anywhere ? 0 : 1; family < 2; family++) {
        const char *text = family == 0 ? "::" : anywhere ? "0.0.0.0" : address;
        if (socket_address_parse(text, port, ret_where, error) < 0)
            return -1;
        SCOPED_CLOSE int descriptor = socket(ret_where->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        socklen_t size = socket_address_size(ret_where);
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (family == 0)
            setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        if (descriptor >= 0 && bind(descriptor, &ret_where->any, size) == 0 && listen(descriptor, SOMAXCONN) == 0 &&
            getsockname(descriptor, &ret_where->any, &size) == 0) {
            int bound = descriptor;
            descriptor = -1;
            return bound;
        }
    }
    return error_set(error, ERROR_UNAVAILABLE, "cannot listen on %s:%u: %s; is another process using the port?",
                     anywhere ? "0.0.0.0" : address, port, strerror(errno));
}

static int listener_open(struct rpc_connections *all, const char *address, uint16_t port,
                         struct rpc_listener **ret_listener, uint16_t *ret_port, struct error *error)
{
    union socket_address where;
    int descriptor = bind_socket(address, port, &where, error);
    if (descriptor < 0)
        return -1;
    struct rpc_listener *listener = memory_allocate(1, sizeof(*listener));
    *listener = (struct rpc_listener){.all = all,
                                      .descriptor = descriptor,
                                      .watch = {.ready = listener_ready, .owner = listener, .epoll = &all->epoll}};
    *ret_listener = listener;
    *ret_port = socket_address_port(&where);
    return 0;
}

/* ---------------------------------------------------------------- the thread */

static void free_connection(struct connection *connection)
{
    if (connection->dialled != NULL)
        rpc_dialled_release(connection->dialled);
    free(connection->to_peer);
    free(connection->to_grpc);
    free(connection);
}

static void sweep(struct rpc_connections *all)
{
    struct connection **place = &all->first;
    while (*place != NULL) {
        struct connection *connection = *place;
        if (connection->state != CONNECTION_GONE) {
            place = &connection->next;
            continue;
        }
        *place = connection->next;
        free_connection(connection);
    }
    all->end = place;
}

static void handle(const struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++) {
        struct watch *watch = events[i].data.ptr;
        if (watch != NULL)
            watch->ready(watch->owner, events[i].events);
    }
}

static void serve_members(struct rpc_connections *all)
{
    struct epoll_event events[MEMBER_EVENTS_MAX] = {0};
    bool clogged = false;
    atomic_store(&all->busy, true);
    handle(events, epoll_wait(all->members, events, MEMBER_EVENTS_MAX, 0));
    for (struct connection *one = all->first; one != NULL && !clogged; one = one->next)
        clogged = one->state == CONNECTION_OPEN && flow_length(one->to_grpc) > 0;
    atomic_store(&all->busy, clogged);
}

static void end_the_late(struct rpc_connections *all, int64_t now)
{
    for (struct connection *one = all->first; one != NULL; one = one->next) {
        struct error error = ERROR_INIT;
        if (one->until_ns == 0 || now < one->until_ns)
            continue;
        if (one->listener != NULL)
            error_set(&error, ERROR_TIMEOUT,
                      one->link.tls == NULL ? "it said nothing for %d s" : "it had not proven itself after %d s",
                      STRANGER_MS / 1000);
        else
            error_set(&error, ERROR_UNAVAILABLE, "no connection within %d s", DIAL_MS / 1000);
        end_connection(one, &error);
    }
    for (struct rpc_listener *listener = all->listeners; listener != NULL; listener = listener->next)
        listener_wait(listener);
}

static void drain_bell(void *owner, uint32_t events)
{
    uint64_t rings;
    (void)events;
    ssize_t ignored = read(((struct rpc_connections *)owner)->bell, &rings, sizeof rings);
    (void)ignored;
}

/* True when nothing is left that must be sent. */
static bool wind_down(struct rpc_connections *all)
{
    for (struct rpc_listener *listener = all->listeners; listener != NULL; listener = listener->next)
        listener_close(listener);
    for (struct connection *one = all->first; one != NULL; one = one->next)
        if (one->state < CONNECTION_OPEN)
            end_connection(one, NULL);
    sweep(all);
    return all->first == NULL;
}

void rpc_connections_block_signals(void)
{
    sigset_t pipes;
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipes, NULL);
}

static void *run(void *context)
{
    struct rpc_connections *all = context;
    int64_t next_look = 0, stop_ns = 0;
    rpc_connections_block_signals();
    heartbeat_start(&all->heartbeat, "accepts connections at the control port");
    for (bool done = false; !done;) {
        struct epoll_event events[EVENTS_MAX] = {0};
        int count = epoll_wait(all->epoll, events, EVENTS_MAX, LOOK_MS);
        int64_t now = clock_monotonic_ns();
        heartbeat_renew(&all->heartbeat);
        pthread_mutex_lock(&all->lock);
        serve_members(all);
        handle(events, count); /* nothing is freed before sweep */
        if (now >= next_look) {
            end_the_late(all, now);
            next_look = now + LOOK_MS * 1000000LL;
        }
        sweep(all);
        if (all->stopping && stop_ns == 0)
            stop_ns = now + LAST_BYTES_NS;
        done = all->stopping && (wind_down(all) || now >= stop_ns);
        pthread_mutex_unlock(&all->lock);
    }
    heartbeat_end(&all->heartbeat);
    return NULL;
}

/* ---------------------------------------------------------------- life cycle */

static void raise_descriptor_limit(unsigned *ret_strangers_max)
{
    struct rlimit limit;
    *ret_strangers_max = STRANGERS_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 4 < STRANGERS_MAX)
        *ret_strangers_max = limit.rlim_cur > 4 ? (unsigned)(limit.rlim_cur / 4) : 1;
}

static void release(struct rpc_connections *all)
{
    const int descriptors[] = {all->spare, all->bell, all->members, all->epoll};
    for (unsigned i = 0; i < sizeof descriptors / sizeof *descriptors; i++)
        if (descriptors[i] >= 0)
            close(descriptors[i]);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

int rpc_connections_start(struct rpc_connections **ret_connections, struct error *error)
{
    struct rpc_connections *all = memory_allocate(1, sizeof(*all));
    raise_descriptor_limit(&all->strangers_max);
    all->end = &all->first;
    all->epoll = epoll_create1(EPOLL_CLOEXEC);
    all->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    all->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    all->members = epoll_create1(EPOLL_CLOEXEC);
    all->bell_watch = (struct watch){.ready = drain_bell, .owner = all, .epoll = &all->epoll};
    watch_descriptor(all->bell, &all->bell_watch, EPOLLIN);
    (void)epoll_ctl(all->epoll, EPOLL_CTL_ADD, all->members, &(struct epoll_event){.events = EPOLLIN});
    pthread_mutex_init(&all->lock, NULL);
    if (all->epoll < 0 || all->members < 0 || all->bell < 0 ||
        (errno = pthread_create(&all->thread, NULL, run, all)) != 0) {
        error_set_errno(error, "cannot start the thread for connections");
        release(all);
        return -1;
    }
    *ret_connections = all;
    return 0;
}

static void ring(struct rpc_connections *all)
{
    uint64_t one = 1;
    ssize_t ignored = write(all->bell, &one, sizeof one);
    (void)ignored;
}

void rpc_connections_free(struct rpc_connections *all)
{
    if (all == NULL)
        return;
    pthread_mutex_lock(&all->lock);
    all->stopping = true;
    pthread_mutex_unlock(&all->lock);
    ring(all);
    pthread_join(all->thread, NULL);
    for (struct connection *one = all->first; one != NULL; one = one->next)
        end_connection(one, NULL);
    sweep(all);
    while (all->listeners != NULL) {
        struct rpc_listener *listener = all->listeners;
        all->listeners = listener->next;
        free(listener);
    }
    release(all);
}

/* ---------------------------------------------------------------- other threads' calls */

int rpc_connections_listen(struct rpc_connections *all, const char *address, uint16_t port, rpc_accepted *accepted,
                           void *context, uint16_t *ret_port, struct error *error)
{
    struct rpc_listener *listener;
    if (listener_open(all, address, port, &listener, ret_port, error) < 0)
        return -1;
    listener->accepted = accepted;
    listener->context = context;
    SCOPED_LOCK(&all->lock);
    listener->next = all->listeners;
    all->listeners = listener;
    listener_wait(listener);
    return 0;
}

void rpc_connections_shut(struct rpc_connections *all, const void *context)
{
    SCOPED_LOCK(&all->lock);
    for (struct rpc_listener *listener = all->listeners; listener != NULL; listener = listener->next)
        if (listener->context == context)
            listener_close(listener);
}

static struct rpc_dialled *new_dialled(void)
{
    struct rpc_dialled *dialled = memory_allocate(1, sizeof(*dialled));
    dialled->references = 2;
    pthread_mutex_init(&dialled->lock, NULL);
    return dialled;
}

static bool begin_to_connect(struct link *link, const union socket_address *where)
{
    int on = 1;
    link->socket = socket(where->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (link->socket < 0)
        return false;
    setsockopt(link->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return connect(link->socket, &where->any, socket_address_size(where)) == 0 || errno == EINPROGRESS;
}

int rpc_connections_dial(struct rpc_connections *all, const char *address, uint16_t port,
                         const unsigned char token[CONNECTION_TOKEN_BYTES], int *ret_descriptor,
                         struct rpc_dialled **ret_dialled, struct error *error)
{
    int ends[2];
    union socket_address where;
    if (socket_address_parse(address, port, &where, error) < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0)
        return error_set_errno(error, "open a pair of sockets");
    struct connection *connection = memory_allocate(1, sizeof(*connection));
    connection->local = ends[0];
    connection->until_ns = clock_monotonic_ns() + DIAL_MS * 1000000LL;
    connection->hello.pod = *pod_identity_own();
    memcpy(connection->hello.token, token, CONNECTION_TOKEN_BYTES);
    connection->dialled = *ret_dialled = new_dialled();
    *ret_descriptor = ends[1];
    link_init(&connection->link);
    bool connecting = begin_to_connect(&connection->link, &where);
    int os_error = errno;
    SCOPED_LOCK(&all->lock);
    add_connection(all, connection);
    if (connecting) {
        watch_descriptor(connection->link.socket, &connection->link_watch, EPOLLOUT);
        watch_descriptor(connection->local, &connection->local_watch, EPOLLRDHUP);
    } else {
        struct error failure = ERROR_INIT;
        connect_failed(os_error, &failure);
        end_connection(connection, &failure);
    }
    return 0;
}

int rpc_dialled_result(struct rpc_dialled *dialled, struct error *error)
{
    SCOPED_LOCK(&dialled->lock);
    bool failed = dialled->error.kind != ERROR_NONE;
    if (failed && error != NULL)
        *error = dialled->error;
    return failed ? -1 : 0;
}

void rpc_dialled_release(struct rpc_dialled *dialled)
{
    pthread_mutex_lock(&dialled->lock);
    bool last = --dialled->references == 0;
    pthread_mutex_unlock(&dialled->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&dialled->lock);
    free(dialled);
}

void rpc_connections_carry(struct rpc_connections *all)
{
    if (pthread_mutex_trylock(&all->lock) != 0)
        return;
    serve_members(all);
    pthread_mutex_unlock(&all->lock);
}

bool rpc_connections_find(struct rpc_connections *all, const unsigned char token[CONNECTION_TOKEN_BYTES],
                          struct pod_identity *ret_pod)
{
    bool found = false;
    SCOPED_LOCK(&all->lock);
    for (struct connection *one = all->first; one != NULL && !found; one = one->next) {
        found = one->listener != NULL && one->state == CONNECTION_OPEN &&
                memcmp(one->hello.token, token, CONNECTION_TOKEN_BYTES) == 0;
        if (found)
            *ret_pod = one->hello.pod;
    }
    return found;
}

/* A descriptor of the set stays readable until the thread, which says that it is busy before, has read what is there. */
bool rpc_connections_are_quiet(struct rpc_connections *all)
{
    struct pollfd waiting = {.fd = all->members, .events = POLLIN};
    return poll(&waiting, 1, 0) == 0 && !atomic_load(&all->busy);
}
