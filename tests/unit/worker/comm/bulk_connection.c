/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/bulk_connection.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include "common/lock.h"
#include "tests/unit/crew_files.h"
#include "tests/unit/loopback.h"
#include "tests/unit/opening.h"
#include "worker/comm/crew_key.h"
#include "worker/comm/link.h"

#define LENGTH (((size_t)9 << 20) + 1) /* some turns */
#define OWN_LENGTH ((size_t)100000)

#define PARTS 5 /* of a load that comes piece by piece */
#define STRANGERS 300

/* Both sides, the acceptor and the dialler, in one process. */
struct sides {
    char host[LOOPBACK_HOST_MAX];
    struct bulk_connections *called, *dials;
    struct bulk_connection *expected, *dialled;
    uint64_t token;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned char *from, *to;
};

static void wake(void *context)
{
    struct sides *sides = context;
    SCOPED_LOCK(&sides->lock);
    pthread_cond_broadcast(&sides->changed);
}

static bool is_open(struct bulk_connection *connection)
{
    return bulk_connection_state(connection) == BULK_CONNECTION_OPEN;
}

static bool is_closed(struct bulk_connection *connection)
{
    return bulk_connection_state(connection) == BULK_CONNECTION_CLOSED;
}

static bool is_decided(struct bulk_connection *connection)
{
    return bulk_connection_state(connection) != BULK_CONNECTION_OPENING;
}

static bool is_idle(struct bulk_connection *connection)
{
    return !bulk_connection_is_busy(connection);
}

/* The test's own limit of time ends what never comes. */
static void await(struct sides *sides, struct bulk_connection *connection,
                  bool (*holds)(struct bulk_connection *connection))
{
    SCOPED_LOCK(&sides->lock);
    while (!holds(connection))
        pthread_cond_wait(&sides->changed, &sides->lock);
}

static void set_up(struct sides *sides, const char *called_as, const char *dials_as)
{
    *sides = (struct sides){.from = malloc(LENGTH), .to = malloc(LENGTH)};
    pthread_mutex_init(&sides->lock, NULL);
    pthread_cond_init(&sides->changed, NULL);
    loopback_host(sides->host, 7);
    for (size_t i = 0; i < LENGTH; i++)
        sides->from[i] = (unsigned char)(i * 2654435761u >> 13);
    const struct bulk_connections_options called = {
        .job_uid = called_as, .listens = true, .listen_address = sides->host, .wake = wake, .context = sides};
    const struct bulk_connections_options dials = {.job_uid = dials_as, .wake = wake, .context = sides};
    cr_assert_eq(bulk_connections_start(&called, &sides->called, NULL), 0);
    cr_assert_eq(bulk_connections_start(&dials, &sides->dials, NULL), 0);
    cr_assert_eq(bulk_connections_port(sides->dials), 0);
    sides->expected = bulk_connection_expect(sides->called, &sides->token);
}

static void dial(struct sides *sides, uint64_t token)
{
    sides->dialled = bulk_connection_dial(sides->dials, sides->host, bulk_connections_port(sides->called), token);
}

static void open_both(struct sides *sides)
{
    set_up(sides, "uid", "uid");
    dial(sides, sides->token);
    await(sides, sides->dialled, is_open);
    await(sides, sides->expected, is_open);
}

static void tear_down(struct sides *sides)
{
    bulk_connection_free(sides->expected);
    bulk_connection_free(sides->dialled);
    bulk_connections_free(sides->called);
    bulk_connections_free(sides->dials);
    free(sides->from);
    free(sides->to);
}

static void carry(struct sides *sides, struct bulk_connection *from, struct bulk_connection *to, size_t length)
{
    memset(sides->to, 0, LENGTH);
    bulk_connection_send(from, sides->from, length);
    bulk_connection_receive(to, sides->to, length);
    await(sides, from, is_idle);
    await(sides, to, is_idle);
    cr_assert(memcmp(sides->from, sides->to, length) == 0, "%zu bytes came as others", length);
}

/* A small load behind a large one: a reader that waits for much must hear of little. */
static void expect_carried(struct sides *sides)
{
    carry(sides, sides->dialled, sides->expected, LENGTH);
    carry(sides, sides->expected, sides->dialled, 1);
    carry(sides, sides->dialled, sides->expected, 70000);
    carry(sides, sides->expected, sides->dialled, LENGTH);
    cr_expect(bulk_connection_moved(sides->dialled) == 2 * LENGTH + 70001);
    cr_expect(bulk_connection_is_ready(sides->dialled));
}

Test(bulk_connection, carries_loads_either_way, .timeout = 120)
{
    struct sides sides;
    open_both(&sides);
    expect_carried(&sides);
    tear_down(&sides);
}

Test(bulk_connection, carries_them_under_the_crews_tls, .timeout = 120)
{
    struct sides sides;
    struct crew_files files;
    crew_files_open(&files);
    crew_files_make(&files, CREW_TLS_EVEN, -1);
    cr_assert_eq(crew_certificates_open(files.directory, NULL), 0);
    open_both(&sides);
    expect_carried(&sides);
    tear_down(&sides);
    crew_files_close(&files);
}

static size_t give_own(void *context, size_t offset, struct link *link)
{
    struct iovec part = {(unsigned char *)context + offset,
                         offset < OWN_LENGTH ? OWN_LENGTH - offset : LENGTH - offset};
    return link_write(link, &part, 1);
}

Test(bulk_connection, a_load_may_be_given_piece_by_piece, .timeout = 120)
{
    struct sides sides;
    open_both(&sides);
    bulk_connection_receive(sides.dialled, sides.to, LENGTH);
    bulk_connection_send_from(sides.expected, LENGTH, give_own, sides.from);
    await(&sides, sides.dialled, is_idle);
    cr_expect(memcmp(sides.from, sides.to, LENGTH) == 0);
    tear_down(&sides);
}

/* The bytes that may be sent so far. */
struct source {
    unsigned char *bytes;
    atomic_size_t known, asked; /* asked: how often there was no more */
};

static size_t give_known(void *context, size_t offset, struct link *link)
{
    struct source *source = context;
    struct iovec part = {source->bytes + offset, atomic_load(&source->known) - offset};
    if (part.iov_len > 0)
        return link_write(link, &part, 1);
    atomic_fetch_add(&source->asked, 1);
    return BULK_CONNECTION_LATER;
}

Test(bulk_connection, a_load_whose_bytes_come_later_goes_on_when_it_is_told, .timeout = 120)
{
    struct sides sides;
    open_both(&sides);
    struct source source = {.bytes = sides.from};
    bulk_connection_receive(sides.dialled, sides.to, LENGTH);
    bulk_connection_send_from(sides.expected, LENGTH, give_known, &source);
    for (size_t part = 1; part <= PARTS; part++) {
        size_t asked = atomic_load(&source.asked);
        while (atomic_load(&source.asked) == 0) /* for the first */
            usleep(1000);
        atomic_store(&source.known, part * LENGTH / PARTS);
        bulk_connection_poke(sides.expected);
        while (part < PARTS && atomic_load(&source.asked) == asked)
            usleep(1000);
    }
    await(&sides, sides.dialled, is_idle);
    await(&sides, sides.expected, is_idle);
    cr_expect(memcmp(sides.from, sides.to, LENGTH) == 0);
    tear_down(&sides);
}

Test(bulk_connection, a_dialler_with_another_token_or_job_is_refused, .timeout = 120)
{
    struct sides sides;
    set_up(&sides, "uid", "uid");
    dial(&sides, sides.token + 1);
    await(&sides, sides.dialled, is_closed);
    cr_expect(bulk_connection_state(sides.expected) == BULK_CONNECTION_OPENING);
    tear_down(&sides);
    set_up(&sides, "uid", "another");
    dial(&sides, sides.token);
    await(&sides, sides.dialled, is_closed);
    cr_expect(bulk_connection_state(sides.expected) == BULK_CONNECTION_OPENING);
    tear_down(&sides);
}

Test(bulk_connection, a_token_is_good_for_one_connection, .timeout = 120)
{
    struct sides sides;
    open_both(&sides);
    struct bulk_connection *second =
        bulk_connection_dial(sides.dials, sides.host, bulk_connections_port(sides.called), sides.token);
    await(&sides, second, is_closed);
    bulk_connection_free(second);
    expect_carried(&sides);
    tear_down(&sides);
}

static int call(const struct sides *sides)
{
    return opening_connect(sides->host, bulk_connections_port(sides->called));
}

Test(bulk_connection, a_dialler_without_the_crews_key_is_not_answered, .timeout = 120)
{
    struct sides sides;
    struct greeting greeting = {.job_uid = "uid"};
    struct opening opening;
    set_up(&sides, "uid", "uid");
    greeting.nonce = sides.token;
    int stranger = call(&sides);
    opening_hear_challenge(stranger, &opening);
    cr_assert_eq(greeting_encode(&greeting, &opening, NULL), 0);
    crew_key_set("the key of this crew", 20);
    opening_send_greeting(stranger, &opening);
    cr_expect(opening_is_ended(stranger));
    close(stranger);
    dial(&sides, sides.token);
    await(&sides, sides.dialled, is_open);
    tear_down(&sides);
    crew_key_set(NULL, 0);
}

/* More strangers than seats, in several rounds: a member that waited for all of them would be too late. */
Test(bulk_connection, strangers_in_silence_keep_nobody_out, .timeout = 120)
{
    struct sides sides;
    int strangers[STRANGERS];
    set_up(&sides, "uid", "uid");
    for (unsigned i = 0; i < STRANGERS; i++)
        strangers[i] = call(&sides);
    dial(&sides, sides.token);
    await(&sides, sides.dialled, is_decided);
    cr_expect(is_open(sides.dialled));
    for (unsigned i = 0; i < STRANGERS; i++)
        close(strangers[i]);
    tear_down(&sides);
}

static int64_t processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* A caller waits if the process has no free descriptor. That keeps the thread idle, which accepts the call later. */
Test(bulk_connection, a_process_without_descriptors_waits_for_some, .timeout = 120)
{
    struct sides sides;
    struct rlimit before, none;
    union socket_address where;
    set_up(&sides, "uid", "uid");
    cr_assert_eq(socket_address_parse(sides.host, bulk_connections_port(sides.called), &where, NULL), 0);
    int caller = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next = dup(caller); /* the lowest that is free */
    cr_assert_geq(next, 0);
    close(next);
    none = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    int connected = connect(caller, &where.any, socket_address_size(&where));
    int64_t since = processor_ns();
    usleep(1000000);
    int64_t taken = processor_ns() - since;
    setrlimit(RLIMIT_NOFILE, &before);
    cr_assert_eq(connected, 0);
    cr_expect(taken < 50000000, "%lld ms of processor time in a second of waiting", (long long)taken / 1000000);
    dial(&sides, sides.token);
    await(&sides, sides.dialled, is_open);
    close(caller);
    tear_down(&sides);
}

Test(bulk_connection, a_connection_that_nobody_answers_closes_soon, .timeout = 120)
{
    struct sides sides;
    union socket_address where;
    socklen_t size = sizeof where;
    set_up(&sides, "uid", "uid");
    int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(socket_address_parse(sides.host, 0, &where, NULL), 0);
    cr_assert_eq(bind(silent, &where.any, socket_address_size(&where)), 0);
    cr_assert_eq(listen(silent, 1), 0);
    cr_assert_eq(getsockname(silent, &where.any, &size), 0);
    sides.dialled = bulk_connection_dial(sides.dials, sides.host, socket_address_port(&where), sides.token);
    await(&sides, sides.dialled, is_closed);
    close(silent);
    tear_down(&sides);
}

Test(bulk_connection, sides_that_expect_different_lengths_part, .timeout = 120)
{
    struct sides sides;
    open_both(&sides);
    memset(sides.to, 0, LENGTH);
    bulk_connection_send(sides.dialled, sides.from, LENGTH);
    bulk_connection_receive(sides.expected, sides.to, LENGTH - 1);
    await(&sides, sides.expected, is_closed);
    cr_expect(bulk_connection_is_busy(sides.expected), "what has not come is told as there");
    for (size_t i = 0; i < LENGTH; i++)
        cr_assert(sides.to[i] == 0);
    bulk_connection_free(sides.expected); /* closes the connection */
    sides.expected = NULL;
    await(&sides, sides.dialled, is_closed);
    tear_down(&sides);
}

Test(bulk_connection, what_is_begun_while_a_load_is_under_way_closes_it, .timeout = 120)
{
    struct sides sides;
    open_both(&sides);
    bulk_connection_receive(sides.expected, sides.to, LENGTH);
    cr_expect_not(bulk_connection_is_ready(sides.expected));
    bulk_connection_receive(sides.expected, sides.to, LENGTH);
    await(&sides, sides.expected, is_closed);
    cr_expect(bulk_connection_is_busy(sides.expected));
    tear_down(&sides);
}

/* Says that it sends all, and goes no further than half. */
static size_t give_half(void *context, size_t offset, struct link *link)
{
    struct iovec part = {(unsigned char *)context + offset, LENGTH / 2 - offset};
    return part.iov_len > 0 ? link_write(link, &part, 1) : 0;
}

/* The connection is freed in the middle of a load, and the load's memory is unmapped, so an access would end the process. */
Test(bulk_connection, a_connection_that_is_given_up_touches_nothing_any_more, .timeout = 120)
{
    struct sides sides;
    open_both(&sides);
    unsigned char *page = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(page != MAP_FAILED);
    bulk_connection_receive(sides.expected, page, LENGTH);
    bulk_connection_send_from(sides.dialled, LENGTH, give_half, sides.from);
    while (bulk_connection_moved(sides.expected) == 0)
        usleep(1000);
    bulk_connection_free(sides.expected);
    munmap(page, LENGTH);
    sides.expected = NULL;
    await(&sides, sides.dialled, is_closed);
    tear_down(&sides);
}
