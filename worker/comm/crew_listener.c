/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/crew_listener.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/comm/heartbeat.h"

#define ROUND_MS 1000        /* the thread goes round at least so often */
#define ACCEPTED_A_ROUND 32  /* then those that wait are heard again */
#define NO_DESCRIPTOR_MS 100 /* accept(2) is tried again after so long */

struct waiting {
    struct pending_connection pending;
    union socket_address from;
    int64_t until_ms;
    max_align_t state[];
};

struct crew_listener {
    struct crew_listener_options options;
    char *port_name;
    int descriptor, wake;
    uint16_t port;
    pthread_t thread;
    bool has_thread;
    atomic_bool stopping;
    struct heartbeat heartbeat;

    /* The thread's. */
    struct waiting *waiting[CREW_LISTENER_PENDING_MAX]; /* the oldest first */
    unsigned count, places;
    int64_t accepts_ms; /* not before; 0: at any time */
    bool is_failing;    /* accept(2) has failed last, for want of a descriptor */
};

/* ---------------------------------------------------------------- those that wait */

static void leave_list(struct crew_listener *listener, unsigned number)
{
    listener->count--;
    memmove(&listener->waiting[number], &listener->waiting[number + 1],
            (listener->count - number) * sizeof(struct waiting *));
}

/* A reset leaves no closed connection behind in the kernel, as an orderly end would for a minute. */
static void close_at_once(int socket)
{
    const struct linger none = {.l_onoff = 1};
    setsockopt(socket, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close(socket);
}

/* `reason` NULL: another connection needs its place. */
static void refuse(struct crew_listener *listener, unsigned number, const char *reason)
{
    struct waiting *waiting = listener->waiting[number];
    if (reason != NULL)
        strangers_refuse(listener->options.number, &waiting->from, reason);
    else
        strangers_evict(listener->options.number, &waiting->from);
    if (listener->options.forget != NULL)
        listener->options.forget(listener->options.context, &waiting->pending);
    close_at_once(waiting->pending.socket);
    leave_list(listener, number);
    free(waiting);
}

/* True: it still waits. */
static bool authenticate(struct crew_listener *listener, unsigned number)
{
    struct waiting *waiting = listener->waiting[number];
    struct error error = ERROR_INIT;
    switch (listener->options.authenticate(listener->options.context, &waiting->pending, &error)) {
    case PENDING_WAITS:
        return true;
    case PENDING_TAKEN:
        leave_list(listener, number);
        free(waiting);
        return false;
    case PENDING_REFUSED:
        refuse(listener, number, error.message);
        return false;
    }
    return false;
}

/* Its proof may have come just now: then it is not refused. */
static void evict(struct crew_listener *listener, unsigned number, const char *reason)
{
    if (authenticate(listener, number))
        refuse(listener, number, reason);
}

static void evict_for(struct crew_listener *listener, const union socket_address *newcomer)
{
    unsigned of_its_host = 0, oldest_of_its_host = 0;
    for (unsigned i = listener->count; i-- > 0;)
        if (socket_address_same_host(&listener->waiting[i]->from, newcomer)) {
            of_its_host++;
            oldest_of_its_host = i;
        }
    if (of_its_host >= listener->places / 2)
        evict(listener, oldest_of_its_host, NULL);
    else if (listener->count >= listener->places)
        evict(listener, 0, NULL);
}

static void refuse_expired(struct crew_listener *listener)
{
    int64_t now = clock_monotonic_ms();
    while (listener->count > 0 && listener->waiting[0]->until_ms <= now)
        evict(listener, 0, "it did not prove in time that it belongs to the crew");
}

/* ---------------------------------------------------------------- accepting */

static void add_connection(struct crew_listener *listener, int socket, const union socket_address *from)
{
    struct waiting *waiting = memory_allocate(1, sizeof *waiting + listener->options.state_bytes);
    evict_for(listener, from);
    waiting->pending = (struct pending_connection){.socket = socket, .events = POLLIN, .state = waiting->state};
    waiting->from = *from;
    waiting->until_ms = clock_monotonic_ms() + CREW_LISTENER_TIMEOUT_MS;
    listener->waiting[listener->count++] = waiting;
    (void)authenticate(listener, listener->count - 1);
}

static bool lacks_descriptors(int code)
{
    return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM;
}

bool listener_has_callers(int listener)
{
    struct pollfd waits = {.fd = listener, .events = POLLIN};
    return poll(&waits, 1, 0) > 0;
}

/* False: nobody else is there, or can be let in now. */
static bool accept_one(struct crew_listener *listener)
{
    union socket_address from = {0};
    socklen_t size = sizeof from;
    int socket = accept4(listener->descriptor, &from.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    int code = socket < 0 ? errno : 0;
    bool lacks = lacks_descriptors(code) && listener_has_callers(listener->descriptor);
    if (lacks && listener->count > 0) {
        evict(listener, 0, NULL);
        return true;
    }
    if (lacks) {
        listener->accepts_ms = clock_monotonic_ms() + NO_DESCRIPTOR_MS;
        listener->is_failing = true;
        return false;
    }
    listener->is_failing = false;
    if (socket < 0)
        return code == ECONNABORTED || code == EINTR || code == EPROTO;
    add_connection(listener, socket, &from);
    return true;
}

/* True: there may be more. */
static bool accept_some(struct crew_listener *listener)
{
    for (unsigned i = 0; i < ACCEPTED_A_ROUND; i++)
        if (!accept_one(listener))
            return false;
    return true;
}

/* ---------------------------------------------------------------- the thread */

static int time_until_next(const struct crew_listener *listener)
{
    int64_t now = clock_monotonic_ms(), next = now + ROUND_MS;
    if (listener->count > 0 && listener->waiting[0]->until_ms < next)
        next = listener->waiting[0]->until_ms;
    if (listener->accepts_ms != 0 && listener->accepts_ms < next)
        next = listener->accepts_ms;
    return next > now ? (int)(next - now) : 0;
}

static void *run(void *context)
{
    struct crew_listener *listener = context;
    struct pollfd polls[2 + CREW_LISTENER_PENDING_MAX];
    bool more = false;
    while (!atomic_load(&listener->stopping)) {
        unsigned count = listener->count;
        bool accepts = clock_monotonic_ms() >= listener->accepts_ms;
        if (accepts)
            listener->accepts_ms = 0;
        polls[0] = (struct pollfd){.fd = listener->wake, .events = POLLIN};
        polls[1] = (struct pollfd){.fd = accepts ? listener->descriptor : -1, .events = POLLIN};
        for (unsigned i = 0; i < count; i++)
            polls[2 + i] = (struct pollfd){.fd = listener->waiting[i]->pending.socket,
                                           .events = listener->waiting[i]->pending.events};
        (void)poll(polls, 2 + count, more ? 0 : time_until_next(listener));
        if (!listener->is_failing)
            heartbeat_renew(&listener->heartbeat);
        for (unsigned i = 0, kept = 0; i < count; i++)
            kept += polls[2 + i].revents == 0 || authenticate(listener, kept);
        refuse_expired(listener);
        bool asked = accepts && (more || polls[1].revents != 0);
        if (accepts && !asked)
            listener->is_failing = false; /* whoever could not be accepted has gone */
        more = asked && accept_some(listener);
    }
    return NULL;
}

/* ---------------------------------------------------------------- life cycle */

static int listen_at(struct crew_listener *listener, struct error *error)
{
    union socket_address where;
    const char *address = listener->options.address;
    if (socket_address_parse(address == NULL || *address == '\0' ? "0.0.0.0" : address, listener->options.port, &where,
                             error) < 0)
        return -1;
    listener->descriptor = socket(where.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->descriptor < 0)
        return error_set_errno(error, "open a socket for the %s", listener->port_name);
    int on = 1;
    setsockopt(listener->descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    int bound = bind(listener->descriptor, &where.any, socket_address_size(&where));
    if (bound < 0 && errno == EADDRINUSE && listener->options.port != 0) {
        socket_address_set_port(&where, 0);
        bound = bind(listener->descriptor, &where.any, socket_address_size(&where));
    }
    socklen_t size = sizeof where;
    if (bound < 0 || listen(listener->descriptor, SOMAXCONN) < 0 ||
        getsockname(listener->descriptor, &where.any, &size) < 0)
        return error_set_errno(error, "listen at the %s", listener->port_name);
    listener->port = socket_address_port(&where);
    return 0;
}

static unsigned places_for_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 4 >= CREW_LISTENER_PENDING_MAX)
        return CREW_LISTENER_PENDING_MAX;
    return limit.rlim_cur < 16 ? 4 : (unsigned)limit.rlim_cur / 4;
}

int crew_listener_open(const struct crew_listener_options *options, struct crew_listener **ret_listener,
                       struct error *error)
{
    struct crew_listener *listener = memory_allocate(1, sizeof *listener);
    listener->options = *options;
    listener->port_name = memory_copy_string(options->port_name);
    listener->descriptor = -1;
    listener->places = places_for_limit();
    listener->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int result = listener->wake < 0 ? error_set_errno(error, "make an event for the %s", listener->port_name)
                                    : listen_at(listener, error);
    if (result < 0)
        crew_listener_free(listener);
    else
        *ret_listener = listener;
    return result;
}

int crew_listener_start(struct crew_listener *listener, struct error *error)
{
    if (listener->has_thread)
        return 0;
    heartbeat_start(&listener->heartbeat, listener->options.heartbeat_name);
    errno = pthread_create(&listener->thread, NULL, run, listener);
    listener->has_thread = errno == 0;
    if (!listener->has_thread)
        heartbeat_end(&listener->heartbeat);
    return listener->has_thread ? 0 : error_set_errno(error, "cannot start the thread of the %s", listener->port_name);
}

void crew_listener_free(struct crew_listener *listener)
{
    if (listener == NULL)
        return;
    if (listener->has_thread) {
        const uint64_t one = 1;
        atomic_store(&listener->stopping, true);
        (void)!write(listener->wake, &one, sizeof one);
        pthread_join(listener->thread, NULL);
        heartbeat_end(&listener->heartbeat);
    }
    for (unsigned i = 0; i < listener->count; i++) {
        if (listener->options.forget != NULL)
            listener->options.forget(listener->options.context, &listener->waiting[i]->pending);
        close(listener->waiting[i]->pending.socket);
        free(listener->waiting[i]);
    }
    if (listener->descriptor >= 0)
        close(listener->descriptor);
    if (listener->wake >= 0)
        close(listener->wake);
    free(listener->port_name);
    free(listener);
}

uint16_t crew_listener_port(const struct crew_listener *listener)
{
    return listener->port;
}

int64_t crew_listener_stuck_ms(const struct crew_listener *listener)
{
    return listener->has_thread ? heartbeat_age_ms(&listener->heartbeat) : 0;
}
