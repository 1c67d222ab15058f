/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/comm/crew_listener.h"
#include "worker/comm/rpc_connections_parts.h"
#include "worker/comm/strangers.h"

#define PAUSE_NS (100 * 1000000LL)
/* Connections that are accepted before others have their turn. */
#define ACCEPTED_AT_ONCE 64

/* Of the address with the most strangers: its oldest that has not said a word, else its oldest. */
static struct connection *choose_victim(struct rpc_connections *all)
{
    struct connection *victim = NULL;
    unsigned most = 0;
    for (struct connection *one = all->first; one != NULL; one = one->next) {
        unsigned same = 0;
        struct connection *oldest = NULL, *silent = NULL;
        if (!connection_is_stranger(one))
            continue;
        for (struct connection *other = all->first; other != NULL; other = other->next) {
            if (!connection_is_stranger(other) || !socket_address_same_host(&one->address, &other->address))
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

bool rpc_listener_evict_oldest(struct rpc_connections *all)
{
    struct connection *victim = choose_victim(all);
    if (victim == NULL)
        return false;
    strangers_evict(STRANGER_CONTROL_PORT, &victim->address);
    connection_end(victim, NULL);
    return true;
}

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

static void add_connection(struct rpc_listener *listener, int socket, const union socket_address *address)
{
    int on = 1;
    struct rpc_connections *all = listener->all;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (all->stranger_count >= all->strangers_max)
        rpc_listener_evict_oldest(all);
    struct connection *connection = memory_allocate(1, sizeof(*connection));
    *connection = (struct connection){.state = CONNECTION_SECURING,
                                      .link = {.socket = socket},
                                      .local = -1,
                                      .until_ns = clock_monotonic_ns() + STRANGER_MS * 1000000LL,
                                      .listener = listener,
                                      .address = *address};
    all->stranger_count++;
    connections_add(all, connection);
    connections_watch(socket, &connection->link_watch, EPOLLIN);
}

static void rpc_listener_ready(void *owner, uint32_t events)
{
    struct rpc_listener *listener = owner;
    (void)events;
    for (unsigned taken = 0; taken < ACCEPTED_AT_ONCE && listener->descriptor >= 0 && listener->pause_until_ns == 0;
         taken++) {
        union socket_address address = {0};
        socklen_t size = sizeof address;
        int socket = accept4(listener->descriptor, &address.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (socket >= 0)
            add_connection(listener, socket, &address);
        else if (errno == EMFILE || errno == ENFILE) {
            if (!listener_has_callers(listener->descriptor))
                break;
            if (!rpc_listener_evict_oldest(listener->all))
                refuse_connection(listener);
        } else if (errno == ENOBUFS || errno == ENOMEM)
            listener->pause_until_ns = clock_monotonic_ns() + PAUSE_NS;
        else if (errno == EAGAIN)
            break;
    }
    rpc_listener_wait(listener);
}

void rpc_listener_wait(struct rpc_listener *listener)
{
    if (listener->pause_until_ns != 0 && clock_monotonic_ns() >= listener->pause_until_ns)
        listener->pause_until_ns = 0;
    connections_watch(listener->descriptor, &listener->watch, listener->pause_until_ns == 0 ? EPOLLIN : 0);
}

void rpc_listener_close(struct rpc_listener *listener)
{
    if (listener->descriptor < 0)
        return;
    connections_watch(listener->descriptor, &listener->watch, 0);
    close(listener->descriptor);
    listener->descriptor = -1;
    for (struct connection *one = listener->all->first; one != NULL; one = one->next)
        if (one->listener == listener && connection_is_stranger(one))
            connection_end(one, NULL);
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

int rpc_listener_open(struct rpc_connections *all, const char *address, uint16_t port,
                      struct rpc_listener **ret_listener, uint16_t *ret_port, struct error *error)
{
    union socket_address where;
    int descriptor = bind_socket(address, port, &where, error);
    if (descriptor < 0)
        return -1;
    struct rpc_listener *listener = memory_allocate(1, sizeof(*listener));
    *listener = (struct rpc_listener){.all = all,
                                      .descriptor = descriptor,
                                      .watch = {.ready = rpc_listener_ready, .owner = listener, .epoll = &all->epoll}};
    *ret_listener = listener;
    *ret_port = socket_address_port(&where);
    return 0;
}
