/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/bulk_connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/lock.h"
#include "common/memory.h"
#include "worker/comm/endpoint.h"
#include "worker/comm/handshake.h"

/* The thread's polling interval while nothing happens. */
#define LOOK_MS 100
/* A connection's turn, before the others have theirs. */
#define TURN_BYTES ((size_t)4 << 20)
/* A receiver sleeps until this many bytes, or all missing ones, have arrived. */
#define READ_MIN ((size_t)1 << 20)

/* A connection is cut after this long with unacknowledged bytes, or if an idle peer does not answer. */
#define CUT_MS 30000
#define PROBE_S 10

/* WAITING: until the other side dials; DIALLING: this side dials. */
enum connection_phase { BULK_WAITING, BULK_DIALLING, BULK_OPEN, BULK_CLOSED };
/* A load is one array of bytes that is being sent (OUT) or received (IN). */
enum load_kind { LOAD_NONE, LOAD_OUT, LOAD_IN };

struct bulk_connection {
    struct bulk_connection *next;
    struct bulk_connections *connections;
    uint64_t token;
    atomic_int phase, load;    /* the owner sets `load` to begin one; all other changes are the thread's */
    atomic_ullong moved;       /* bytes sent and received so far */
    atomic_bool poked;         /* set by the owner: `give` has more bytes */
    atomic_bool dropped, left; /* set by the owner: the load must end; the thread may release the connection */

    pthread_mutex_t lock; /* guards what follows */
    struct link link;
    int64_t until_ns;           /* when to give up dialling */
    struct handshake handshake; /* of dialling */

    bool is_new;                         /* the thread has not begun to move the load yet */
    bool waits;                          /* `give` has returned BULK_CONNECTION_LATER */
    uint64_t number;                     /* number of loads before this one, in both directions */
    unsigned char head[LOAD_HEAD_BYTES]; /* of the load under way (frame.h) */
    size_t head_done, length, done;      /* bytes of the head that are moved; bytes of the load in all, and moved */
    unsigned char *bytes;
    bulk_connection_give *give;
    void *context;
};

struct bulk_connections {
    struct bulk_connections_options options;
    char *job_uid;
    struct endpoint *endpoint;
    int bell; /* an eventfd that wakes the thread */
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock; /* guards what follows; taken before a connection's lock */
    struct bulk_connection *first;
    bool stopping;
};

static void ring(struct bulk_connections *connections)
{
    const uint64_t one = 1;
    (void)!write(connections->bell, &one, sizeof one);
}

static void tell_owner(const struct bulk_connection *connection)
{
    const struct bulk_connections_options *options = &connection->connections->options;
    if (!atomic_load(&connection->dropped))
        options->wake(options->context);
}

static void set_phase(struct bulk_connection *connection, enum connection_phase phase)
{
    atomic_store(&connection->phase, phase);
    if (phase == BULK_OPEN || phase == BULK_CLOSED)
        tell_owner(connection);
}

/* ---------------------------------------------------------------- loads; with the connection's lock held */

static void end_load(struct bulk_connection *connection)
{
    connection->number++;
    atomic_store(&connection->load, LOAD_NONE);
    tell_owner(connection);
}

static bool pass_head(struct bulk_connection *connection, bool sends)
{
    unsigned char *at = connection->head + connection->head_done;
    size_t left = sizeof connection->head - connection->head_done;
    connection->head_done +=
        sends ? link_write(&connection->link, &(struct iovec){at, left}, 1) : link_read(&connection->link, at, left);
    return connection->head_done == sizeof connection->head;
}

/* Once all of it is there. */
static bool head_holds(const struct bulk_connection *connection)
{
    struct load_head head;
    return load_head_decode(connection->head, &head, NULL) == 0 && head.number == connection->number &&
           head.length == connection->length;
}

static size_t send_some(struct bulk_connection *connection, size_t most)
{
    if (connection->give != NULL)
        return connection->give(connection->context, connection->done, &connection->link);
    return link_write(&connection->link, &(struct iovec){connection->bytes + connection->done, most}, 1);
}

/* Fewer and larger reads; a session reads records. */
static void sleep_until_enough(const struct bulk_connection *connection)
{
    size_t left = sizeof connection->head - connection->head_done + connection->length - connection->done;
    int enough = (int)(left < READ_MIN ? left : READ_MIN);
    if (connection->link.tls == NULL)
        setsockopt(connection->link.socket, SOL_SOCKET, SO_RCVLOWAT, &enough, sizeof enough);
}

static void move_load(struct bulk_connection *connection)
{
    bool sends = connection->load == LOAD_OUT;
    size_t turn = 0;
    bool had_head = connection->head_done == sizeof connection->head,
         has_head = had_head || pass_head(connection, sends);
    if (has_head && !had_head && !sends && !head_holds(connection)) {
        connection->link.closed = true;
        return;
    }
    for (size_t moved = has_head; moved > 0 && connection->done < connection->length && turn < TURN_BYTES;) {
        if (atomic_load(&connection->dropped))
            return;
        size_t left = connection->length - connection->done, most = left < TURN_BYTES ? left : TURN_BYTES;
        moved = sends ? send_some(connection, most)
                      : link_read(&connection->link, connection->bytes + connection->done, most);
        connection->waits = moved == BULK_CONNECTION_LATER;
        moved = connection->waits ? 0 : moved;
        connection->done += moved;
        turn += moved;
    }
    atomic_fetch_add(&connection->moved, turn);
    if (connection->done == connection->length)
        end_load(connection);
    else if (!sends)
        sleep_until_enough(connection);
}

static void begin_load(struct bulk_connection *connection, enum load_kind kind, unsigned char *bytes, size_t length,
                       bulk_connection_give *give, void *context)
{
    pthread_mutex_lock(&connection->lock);
    connection->link.closed |= connection->phase != BULK_OPEN || connection->load != LOAD_NONE || length == 0;
    connection->is_new = true;
    connection->waits = false;
    connection->head_done = connection->done = 0;
    connection->length = length;
    connection->bytes = bytes;
    connection->give = give;
    connection->context = context;
    load_head_encode(&(struct load_head){.number = connection->number, .length = length}, connection->head);
    atomic_store(&connection->load, kind);
    pthread_mutex_unlock(&connection->lock);
    ring(connection->connections);
}

void bulk_connection_send(struct bulk_connection *connection, const void *bytes, size_t length)
{
    begin_load(connection, LOAD_OUT, (unsigned char *)bytes, length, NULL, NULL);
}

void bulk_connection_receive(struct bulk_connection *connection, void *bytes, size_t length)
{
    begin_load(connection, LOAD_IN, bytes, length, NULL, NULL);
}

void bulk_connection_send_from(struct bulk_connection *connection, size_t length, bulk_connection_give *give,
                               void *context)
{
    begin_load(connection, LOAD_OUT, NULL, length, give, context);
}

void bulk_connection_poke(struct bulk_connection *connection)
{
    atomic_store(&connection->poked, true);
    ring(connection->connections);
}

/* ---------------------------------------------------------------- connections */

/* Creates a connection that is not in the list yet; connection_enter adds it. */
static struct bulk_connection *connection_new(struct bulk_connections *connections, uint64_t token)
{
    struct bulk_connection *connection = memory_allocate(1, sizeof *connection);
    connection->connections = connections;
    connection->token = token;
    link_init(&connection->link);
    pthread_mutex_init(&connection->lock, NULL);
    return connection;
}

static void connection_enter(struct bulk_connection *connection)
{
    struct bulk_connections *connections = connection->connections;
    pthread_mutex_lock(&connections->lock);
    connection->next = connections->first;
    connections->first = connection;
    pthread_mutex_unlock(&connections->lock);
    ring(connections);
}

/* The thread may be at it. */
void bulk_connection_free(struct bulk_connection *connection)
{
    if (connection == NULL)
        return;
    struct bulk_connections *connections = connection->connections;
    atomic_store(&connection->dropped, true);
    pthread_mutex_lock(&connection->lock);
    atomic_store(&connection->left, true);
    pthread_mutex_unlock(&connection->lock);
    ring(connections);
}

enum bulk_connection_state bulk_connection_state(struct bulk_connection *connection)
{
    int phase = atomic_load(&connection->phase);
    return phase == BULK_OPEN     ? BULK_CONNECTION_OPEN
           : phase == BULK_CLOSED ? BULK_CONNECTION_CLOSED
                                  : BULK_CONNECTION_OPENING;
}

bool bulk_connection_is_ready(struct bulk_connection *connection)
{
    SCOPED_LOCK(&connection->lock);
    return connection->phase == BULK_OPEN && connection->load == LOAD_NONE && !connection->link.closed;
}

bool bulk_connection_is_busy(struct bulk_connection *connection)
{
    return atomic_load(&connection->load) != LOAD_NONE;
}

uint64_t bulk_connection_moved(struct bulk_connection *connection)
{
    return atomic_load(&connection->moved);
}

static void release(struct bulk_connection *connection)
{
    link_release(&connection->link);
    pthread_mutex_destroy(&connection->lock);
    free(connection);
}

/* ---------------------------------------------------------------- opening */

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

/* Continues to open a dialled connection, with its lock held. `ready`: poll(2) reported its socket. */
static void open_further(struct bulk_connection *connection, bool ready)
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
        set_phase(connection, BULK_OPEN);
    else if (handshake->phase == HANDSHAKE_ANSWERED || handshake->phase == HANDSHAKE_FAILED ||
             clock_monotonic_ns() >= connection->until_ns)
        set_phase(connection, BULK_CLOSED);
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
    SCOPED_LOCK(&connection->lock);
    bool is_its =
        connection->phase == BULK_WAITING && !connection->dropped && connection->token == arrival->greeting.nonce;
    if (is_its) {
        notice_cuts(arrival->link.socket);
        arrival_answer(arrival, ANSWER_TCP);
        connection->link = arrival->link;
        link_init(&arrival->link);
        set_phase(connection, BULK_OPEN);
    }
    return is_its;
}

/* Gives the connections that have arrived to the connections that expect them, and refuses the others. */
static void take_arrivals(struct bulk_connections *connections)
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

/* ---------------------------------------------------------------- the thread */

/* Returns whether the TLS session has bytes that were read from the socket but not by the connection; poll(2) does not report these. */
static bool has_input(struct bulk_connection *connection)
{
    struct pollfd poll;
    return connection->load == LOAD_IN && !link_prepare_poll(&connection->link, true, false, &poll);
}

/* With the connection's lock held. */
static void advance(struct bulk_connection *connection, short happened)
{
    bool is_new = atomic_exchange(&connection->poked, false) || connection->is_new;
    connection->is_new = false;
    if (connection->phase == BULK_DIALLING) {
        open_further(connection, happened != 0);
        return;
    }
    if (connection->phase != BULK_OPEN)
        return;
    bool is_left = (happened & (POLLHUP | POLLERR | POLLRDHUP)) != 0;
    if (connection->load != LOAD_IN && is_left) /* what it sent before may be of use to a reader alone */
        connection->link.closed = true;
    if (!connection->link.closed && connection->load != LOAD_NONE && (happened != 0 || is_new || has_input(connection)))
        move_load(connection);
    if (connection->link.closed)
        set_phase(connection, BULK_CLOSED);
}

/* What the thread polls: the bell, arrivals, connections. */
struct watch {
    struct pollfd *polls;
    struct bulk_connection **connections; /* of the last `connection_count` polls */
    unsigned count, connection_count, capacity;
    bool at_once; /* something can be done without waiting */
};

static struct pollfd *watch_add(struct watch *watch)
{
    if (watch->count == watch->capacity) {
        watch->capacity = 2 * watch->capacity + 8;
        watch->polls = memory_resize(watch->polls, watch->capacity, sizeof *watch->polls);
        watch->connections = memory_resize(watch->connections, watch->capacity, sizeof(struct bulk_connection *));
    }
    return &watch->polls[watch->count++];
}

static void watch_connection(struct watch *watch, struct bulk_connection *connection)
{
    struct pollfd *poll = watch_add(watch);
    pthread_mutex_lock(&connection->lock);
    bool opens = connection->phase == BULK_DIALLING,
         connects = opens && connection->handshake.phase == HANDSHAKE_CONNECTING;
    bool is_open = connection->phase == BULK_OPEN;
    *poll = (struct pollfd){.fd = -1};
    if (opens || is_open) {
        bool ready = !link_prepare_poll(&connection->link, connection->load == LOAD_IN || (opens && !connects),
                                        (connection->load == LOAD_OUT && !connection->waits) || connects, poll);
        poll->events |= POLLRDHUP;
        watch->at_once |= connection->is_new || atomic_load(&connection->poked) || ready || connection->link.closed;
    }
    pthread_mutex_unlock(&connection->lock);
    watch->connections[watch->connection_count++] = connection;
}

static void watch_all(struct watch *watch, struct bulk_connections *connections)
{
    watch->count = watch->connection_count = 0;
    watch->at_once = false;
    *watch_add(watch) = (struct pollfd){.fd = connections->bell, .events = POLLIN};
    *watch_add(watch) = (struct pollfd){.fd = connections->endpoint ? endpoint_descriptor(connections->endpoint) : -1,
                                        .events = POLLIN};
    SCOPED_LOCK(&connections->lock);
    for (struct bulk_connection *connection = connections->first; connection != NULL; connection = connection->next)
        watch_connection(watch, connection);
}

static void advance_watched(const struct watch *watch)
{
    const struct pollfd *polls = watch->polls + (watch->count - watch->connection_count);
    for (unsigned i = 0; i < watch->connection_count; i++) {
        struct bulk_connection *connection = watch->connections[i];
        pthread_mutex_lock(&connection->lock);
        if (!atomic_load(&connection->dropped))
            advance(connection, polls[i].revents);
        pthread_mutex_unlock(&connection->lock);
    }
}

static void sweep(struct bulk_connections *connections)
{
    pthread_mutex_lock(&connections->lock);
    for (struct bulk_connection **place = &connections->first; *place != NULL;) {
        struct bulk_connection *connection = *place;
        if (!atomic_load(&connection->left)) {
            place = &connection->next;
            continue;
        }
        *place = connection->next;
        pthread_mutex_lock(&connection->lock); /* its owner may be about to leave it */
        pthread_mutex_unlock(&connection->lock);
        release(connection);
    }
    pthread_mutex_unlock(&connections->lock);
}

static bool is_stopping(struct bulk_connections *connections)
{
    SCOPED_LOCK(&connections->lock);
    bool stopping = connections->stopping;
    return stopping;
}

static void *run(void *context)
{
    struct bulk_connections *connections = context;
    struct watch watch = {0};
    while (!is_stopping(connections)) {
        uint64_t rings;
        watch_all(&watch, connections);
        if (poll(watch.polls, watch.count, watch.at_once ? 0 : LOOK_MS) < 0)
            continue;
        if (watch.polls[0].revents != 0)
            (void)!read(connections->bell, &rings, sizeof rings);
        advance_watched(&watch);
        if (connections->endpoint != NULL && watch.polls[1].revents != 0)
            take_arrivals(connections);
        sweep(connections);
    }
    free(watch.polls);
    free(watch.connections);
    return NULL;
}

int bulk_connections_start(const struct bulk_connections_options *options, struct bulk_connections **ret_connections,
                           struct error *error)
{
    struct bulk_connections *connections = memory_allocate(1, sizeof *connections);
    connections->options = *options;
    connections->job_uid = memory_copy_string(options->job_uid);
    pthread_mutex_init(&connections->lock, NULL);
    connections->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int result = connections->bell < 0 ? error_set_errno(error, "make an event for data connections") : 0;
    if (result == 0 && options->listens)
        result = endpoint_open(options->listen_address, options->port, &connections->endpoint, error);
    if (result == 0 && options->listens)
        result = endpoint_start(connections->endpoint, error);
    if (result == 0) {
        errno = pthread_create(&connections->thread, NULL, run, connections);
        connections->has_thread = errno == 0;
        result = errno ? error_set_errno(error, "cannot start the thread for data connections") : 0;
    }
    if (result < 0)
        bulk_connections_free(connections);
    else
        *ret_connections = connections;
    return result;
}

uint16_t bulk_connections_port(const struct bulk_connections *connections)
{
    return connections->endpoint ? endpoint_port(connections->endpoint) : 0;
}

void bulk_connections_free(struct bulk_connections *connections)
{
    if (connections == NULL)
        return;
    pthread_mutex_lock(&connections->lock);
    connections->stopping = true;
    pthread_mutex_unlock(&connections->lock);
    ring(connections);
    if (connections->has_thread)
        pthread_join(connections->thread, NULL);
    while (connections->first != NULL) {
        struct bulk_connection *connection = connections->first;
        connections->first = connection->next;
        release(connection);
    }
    endpoint_free(connections->endpoint);
    if (connections->bell >= 0)
        close(connections->bell);
    pthread_mutex_destroy(&connections->lock);
    free(connections->job_uid);
    free(connections);
}
