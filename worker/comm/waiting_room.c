/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/waiting_room.h"

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
#include "worker/comm/pulse.h"

#define ROUND_MS 1000        /* the thread goes round at least so often */
#define ACCEPTED_A_ROUND 32  /* then those that wait are heard again */
#define NO_DESCRIPTOR_MS 100 /* accept(2) is tried again after so long */

struct waiting {
    struct pending_connection pending;
    union socket_address from;
    int64_t until_ms;
    max_align_t state[];
};

struct waiting_room {
    struct waiting_room_options options;
    char *port_name;
    int listener, wake;
    uint16_t port;
    pthread_t thread;
    bool has_thread;
    atomic_bool stopping;
    struct pulse pulse;

    /* The thread's. */
    struct waiting *waiting[WAITING_ROOM_MAX]; /* the oldest first */
    unsigned count, places;
    int64_t accepts_ms; /* not before; 0: at any time */
    bool is_failing;    /* accept(2) has failed last, for want of a descriptor */
};

/* ---------------------------------------------------------------- those that wait */

static void leave_list(struct waiting_room *room, unsigned number)
{
    room->count--;
    memmove(&room->waiting[number], &room->waiting[number + 1], (room->count - number) * sizeof(struct waiting *));
}

/* A reset leaves no closed connection behind in the kernel, as an orderly end would for a minute. */
static void close_at_once(int socket)
{
    const struct linger none = {.l_onoff = 1};
    setsockopt(socket, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close(socket);
}

/* `reason` NULL: another connection needs its place. */
static void refuse(struct waiting_room *room, unsigned number, const char *reason)
{
    struct waiting *waiting = room->waiting[number];
    if (reason != NULL)
        strangers_refuse(room->options.number, &waiting->from, reason);
    else
        strangers_evict(room->options.number, &waiting->from);
    if (room->options.forget != NULL)
        room->options.forget(room->options.context, &waiting->pending);
    close_at_once(waiting->pending.socket);
    leave_list(room, number);
    free(waiting);
}

/* True: it still waits. */
static bool hear(struct waiting_room *room, unsigned number)
{
    struct waiting *waiting = room->waiting[number];
    struct error error = ERROR_INIT;
    switch (room->options.hear(room->options.context, &waiting->pending, &error)) {
    case PENDING_WAITS:
        return true;
    case PENDING_TAKEN:
        leave_list(room, number);
        free(waiting);
        return false;
    case PENDING_REFUSED:
        refuse(room, number, error.message);
        return false;
    }
    return false;
}

/* Its proof may have come just now: then it is not refused. */
static void push_out(struct waiting_room *room, unsigned number, const char *reason)
{
    if (hear(room, number))
        refuse(room, number, reason);
}

static void make_room(struct waiting_room *room, const union socket_address *newcomer)
{
    unsigned of_its_host = 0, oldest_of_its_host = 0;
    for (unsigned i = room->count; i-- > 0;)
        if (socket_address_same_host(&room->waiting[i]->from, newcomer)) {
            of_its_host++;
            oldest_of_its_host = i;
        }
    if (of_its_host >= room->places / 2)
        push_out(room, oldest_of_its_host, NULL);
    else if (room->count >= room->places)
        push_out(room, 0, NULL);
}

static void end_patience(struct waiting_room *room)
{
    int64_t now = clock_monotonic_ms();
    while (room->count > 0 && room->waiting[0]->until_ms <= now)
        push_out(room, 0, "it did not prove in time that it belongs to the crew");
}

/* ---------------------------------------------------------------- accepting */

static void let_in(struct waiting_room *room, int socket, const union socket_address *from)
{
    struct waiting *waiting = memory_allocate(1, sizeof *waiting + room->options.state_bytes);
    make_room(room, from);
    waiting->pending = (struct pending_connection){.socket = socket, .events = POLLIN, .state = waiting->state};
    waiting->from = *from;
    waiting->until_ms = clock_monotonic_ms() + WAITING_ROOM_PATIENCE_MS;
    room->waiting[room->count++] = waiting;
    (void)hear(room, room->count - 1);
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
static bool accept_one(struct waiting_room *room)
{
    union socket_address from = {0};
    socklen_t size = sizeof from;
    int socket = accept4(room->listener, &from.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    int code = socket < 0 ? errno : 0;
    bool lacks = lacks_descriptors(code) && listener_has_callers(room->listener);
    if (lacks && room->count > 0) {
        push_out(room, 0, NULL);
        return true;
    }
    if (lacks) {
        room->accepts_ms = clock_monotonic_ms() + NO_DESCRIPTOR_MS;
        room->is_failing = true;
        return false;
    }
    room->is_failing = false;
    if (socket < 0)
        return code == ECONNABORTED || code == EINTR || code == EPROTO;
    let_in(room, socket, &from);
    return true;
}

/* True: there may be more. */
static bool accept_some(struct waiting_room *room)
{
    for (unsigned i = 0; i < ACCEPTED_A_ROUND; i++)
        if (!accept_one(room))
            return false;
    return true;
}

/* ---------------------------------------------------------------- the thread */

static int time_until_next(const struct waiting_room *room)
{
    int64_t now = clock_monotonic_ms(), next = now + ROUND_MS;
    if (room->count > 0 && room->waiting[0]->until_ms < next)
        next = room->waiting[0]->until_ms;
    if (room->accepts_ms != 0 && room->accepts_ms < next)
        next = room->accepts_ms;
    return next > now ? (int)(next - now) : 0;
}

static void *run(void *context)
{
    struct waiting_room *room = context;
    struct pollfd polls[2 + WAITING_ROOM_MAX];
    bool more = false;
    while (!atomic_load(&room->stopping)) {
        unsigned count = room->count;
        bool accepts = clock_monotonic_ms() >= room->accepts_ms;
        if (accepts)
            room->accepts_ms = 0;
        polls[0] = (struct pollfd){.fd = room->wake, .events = POLLIN};
        polls[1] = (struct pollfd){.fd = accepts ? room->listener : -1, .events = POLLIN};
        for (unsigned i = 0; i < count; i++)
            polls[2 + i] =
                (struct pollfd){.fd = room->waiting[i]->pending.socket, .events = room->waiting[i]->pending.events};
        (void)poll(polls, 2 + count, more ? 0 : time_until_next(room));
        if (!room->is_failing)
            pulse_beat(&room->pulse);
        for (unsigned i = 0, kept = 0; i < count; i++)
            kept += polls[2 + i].revents == 0 || hear(room, kept);
        end_patience(room);
        bool asked = accepts && (more || polls[1].revents != 0);
        if (accepts && !asked)
            room->is_failing = false; /* whoever could not be accepted has gone */
        more = asked && accept_some(room);
    }
    return NULL;
}

/* ---------------------------------------------------------------- life cycle */

static int listen_at(struct waiting_room *room, struct error *error)
{
    union socket_address where;
    const char *address = room->options.address;
    if (socket_address_parse(address == NULL || *address == '\0' ? "0.0.0.0" : address, room->options.port, &where,
                             error) < 0)
        return -1;
    room->listener = socket(where.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (room->listener < 0)
        return error_set_errno(error, "open a socket for the %s", room->port_name);
    int on = 1;
    setsockopt(room->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    int bound = bind(room->listener, &where.any, socket_address_size(&where));
    if (bound < 0 && errno == EADDRINUSE && room->options.port != 0) {
        socket_address_set_port(&where, 0);
        bound = bind(room->listener, &where.any, socket_address_size(&where));
    }
    socklen_t size = sizeof where;
    if (bound < 0 || listen(room->listener, SOMAXCONN) < 0 || getsockname(room->listener, &where.any, &size) < 0)
        return error_set_errno(error, "listen at the %s", room->port_name);
    room->port = socket_address_port(&where);
    return 0;
}

static unsigned places_for_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 4 >= WAITING_ROOM_MAX)
        return WAITING_ROOM_MAX;
    return limit.rlim_cur < 16 ? 4 : (unsigned)limit.rlim_cur / 4;
}

int waiting_room_open(const struct waiting_room_options *options, struct waiting_room **ret_room, struct error *error)
{
    struct waiting_room *room = memory_allocate(1, sizeof *room);
    room->options = *options;
    room->port_name = memory_copy_string(options->port_name);
    room->listener = -1;
    room->places = places_for_limit();
    room->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int result =
        room->wake < 0 ? error_set_errno(error, "make an event for the %s", room->port_name) : listen_at(room, error);
    if (result < 0)
        waiting_room_free(room);
    else
        *ret_room = room;
    return result;
}

int waiting_room_start(struct waiting_room *room, struct error *error)
{
    if (room->has_thread)
        return 0;
    pulse_start(&room->pulse, room->options.pulse_name);
    errno = pthread_create(&room->thread, NULL, run, room);
    room->has_thread = errno == 0;
    if (!room->has_thread)
        pulse_end(&room->pulse);
    return room->has_thread ? 0 : error_set_errno(error, "start the thread of the %s", room->port_name);
}

void waiting_room_free(struct waiting_room *room)
{
    if (room == NULL)
        return;
    if (room->has_thread) {
        const uint64_t one = 1;
        atomic_store(&room->stopping, true);
        (void)!write(room->wake, &one, sizeof one);
        pthread_join(room->thread, NULL);
        pulse_end(&room->pulse);
    }
    for (unsigned i = 0; i < room->count; i++) {
        if (room->options.forget != NULL)
            room->options.forget(room->options.context, &room->waiting[i]->pending);
        close(room->waiting[i]->pending.socket);
        free(room->waiting[i]);
    }
    if (room->listener >= 0)
        close(room->listener);
    if (room->wake >= 0)
        close(room->wake);
    free(room->port_name);
    free(room);
}

uint16_t waiting_room_port(const struct waiting_room *room)
{
    return room->port;
}

int64_t waiting_room_stuck_ms(const struct waiting_room *room)
{
    return room->has_thread ? pulse_age_ms(&room->pulse) : 0;
}
