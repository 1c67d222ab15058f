/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/rpc_connections.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/comm/rpc_connections_parts.h"

#define MEMBER_EVENTS_MAX 256
/* Handshakes cost time: open connections have another turn after so many. */
#define EVENTS_MAX 16
/* How often deadlines are looked at. */
#define LOOK_MS 100
#define LAST_BYTES_NS (1000 * 1000000LL)

/* ---------------------------------------------------------------- the thread's parts */

void connections_watch(int descriptor, struct watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    if (descriptor < 0 || watch->events == events)
        return;
    int operation = events == 0 ? EPOLL_CTL_DEL : watch->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    watch->events = events;
    (void)epoll_ctl(*watch->epoll, operation, descriptor, &event);
}

void connections_add(struct rpc_connections *all, struct connection *connection)
{
    connection->all = all;
    connection->link_watch = (struct watch){.ready = connection_on_link, .owner = connection, .epoll = &all->epoll};
    connection->local_watch = (struct watch){.ready = connection_on_local, .owner = connection, .epoll = &all->members};
    *all->end = connection;
    all->end = &connection->next;
}

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
        connection_end(one, &error);
    }
    for (struct rpc_listener *listener = all->listeners; listener != NULL; listener = listener->next)
        rpc_listener_wait(listener);
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
        rpc_listener_close(listener);
    for (struct connection *one = all->first; one != NULL; one = one->next)
        if (one->state < CONNECTION_OPEN)
            connection_end(one, NULL);
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
    connections_watch(all->bell, &all->bell_watch, EPOLLIN);
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
        connection_end(one, NULL);
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
    if (rpc_listener_open(all, address, port, &listener, ret_port, error) < 0)
        return -1;
    listener->accepted = accepted;
    listener->context = context;
    pthread_mutex_lock(&all->lock);
    listener->next = all->listeners;
    all->listeners = listener;
    rpc_listener_wait(listener);
    pthread_mutex_unlock(&all->lock);
    return 0;
}

void rpc_connections_shut(struct rpc_connections *all, const void *context)
{
    pthread_mutex_lock(&all->lock);
    for (struct rpc_listener *listener = all->listeners; listener != NULL; listener = listener->next)
        if (listener->context == context)
            rpc_listener_close(listener);
    pthread_mutex_unlock(&all->lock);
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
    pthread_mutex_lock(&all->lock);
    connections_add(all, connection);
    if (connecting) {
        connections_watch(connection->link.socket, &connection->link_watch, EPOLLOUT);
        connections_watch(connection->local, &connection->local_watch, EPOLLRDHUP);
    } else {
        struct error failure = ERROR_INIT;
        connection_connect_failed(os_error, &failure);
        connection_end(connection, &failure);
    }
    pthread_mutex_unlock(&all->lock);
    return 0;
}

int rpc_dialled_result(struct rpc_dialled *dialled, struct error *error)
{
    pthread_mutex_lock(&dialled->lock);
    bool failed = dialled->error.kind != ERROR_NONE;
    if (failed && error != NULL)
        *error = dialled->error;
    pthread_mutex_unlock(&dialled->lock);
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
    pthread_mutex_lock(&all->lock);
    for (struct connection *one = all->first; one != NULL && !found; one = one->next) {
        found = one->listener != NULL && one->state == CONNECTION_OPEN &&
                memcmp(one->hello.token, token, CONNECTION_TOKEN_BYTES) == 0;
        if (found)
            *ret_pod = one->hello.pod;
    }
    pthread_mutex_unlock(&all->lock);
    return found;
}

/* A descriptor of the set stays readable until the thread, which says that it is busy before, has read what is there. */
bool rpc_connections_are_quiet(struct rpc_connections *all)
{
    struct pollfd waiting = {.fd = all->members, .events = POLLIN};
    return poll(&waiting, 1, 0) == 0 && !atomic_load(&all->busy);
}
