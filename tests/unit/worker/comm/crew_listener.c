/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/crew_listener.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "tests/unit/opening.h"

#define STRANGERS (CREW_LISTENER_PENDING_MAX + 100)

/* A port whose members say 'm'. */
struct port {
    struct crew_listener *listener;
    atomic_int members;
};

static enum pending_verdict authenticate(void *context, struct pending_connection *pending, struct error *error)
{
    struct port *port = context;
    char byte;
    ssize_t length = recv(pending->socket, &byte, 1, MSG_DONTWAIT);
    if (length < 0)
        return PENDING_WAITS;
    if (length == 0 || byte != 'm') {
        error_set(error, ERROR_FORBIDDEN, "it is no member");
        return PENDING_REFUSED;
    }
    atomic_fetch_add(&port->members, 1);
    send(pending->socket, "!", 1, MSG_NOSIGNAL);
    close(pending->socket);
    return PENDING_TAKEN;
}

static void port_open(struct port *port)
{
    const struct crew_listener_options options = {.port_name = "test port",
                                                  .number = STRANGER_DATA_PORT,
                                                  .heartbeat_name = "accepts",
                                                  .address = "0.0.0.0",
                                                  .authenticate = authenticate,
                                                  .context = port};
    *port = (struct port){0};
    cr_assert_eq(crew_listener_open(&options, &port->listener, NULL), 0);
    cr_assert_eq(crew_listener_start(port->listener, NULL), 0);
}

static int come_from(const struct port *port, const char *host)
{
    union socket_address from, to;
    cr_assert_eq(socket_address_parse(host, 0, &from, NULL), 0);
    cr_assert_eq(socket_address_parse("127.0.0.1", crew_listener_port(port->listener), &to, NULL), 0);
    int pending = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(pending, &from.any, socket_address_size(&from)), 0);
    cr_assert_eq(connect(pending, &to.any, socket_address_size(&to)), 0);
    return pending;
}

static bool is_welcome(int pending)
{
    char byte = 0;
    bool welcome = send(pending, "m", 1, MSG_NOSIGNAL) == 1 && recv(pending, &byte, 1, 0) == 1 && byte == '!';
    close(pending);
    return welcome;
}

/* Waits until the other side has closed that many of the connections. */
static void await_closed(const int *callers, unsigned count, unsigned wanted)
{
    unsigned closed = 0;
    struct pollfd *looks = calloc(count, sizeof *looks);
    while (closed < wanted) {
        closed = 0;
        for (unsigned i = 0; i < count; i++)
            looks[i] = (struct pollfd){.fd = callers[i], .events = POLLRDHUP};
        poll(looks, count, 0);
        for (unsigned i = 0; i < count; i++)
            closed += looks[i].revents != 0;
    }
    free(looks);
}

static void close_all(const int *callers, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        close(callers[i]);
}

static void allow_descriptors(rlim_t count)
{
    struct rlimit limit;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = count < limit.rlim_max ? count : limit.rlim_max;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

Test(crew_listener, the_oldest_strangers_of_an_address_give_way_to_its_newest, .timeout = 120)
{
    struct port port;
    struct stranger_summary summary;
    static int callers[STRANGERS];
    allow_descriptors(4096);
    port_open(&port);
    for (unsigned i = 0; i < STRANGERS; i++)
        callers[i] = come_from(&port, "127.0.0.1");
    cr_expect(is_welcome(come_from(&port, "127.0.0.1")));
    await_closed(callers, STRANGERS, STRANGERS - CREW_LISTENER_PENDING_MAX / 2);
    strangers_take(&summary);
    cr_expect_geq(summary.refused, STRANGERS - CREW_LISTENER_PENDING_MAX / 2);
    cr_expect_str_eq(summary.worst, "127.0.0.1");
    cr_expect_geq(strangers_count(STRANGER_DATA_PORT).door_full, STRANGERS - CREW_LISTENER_PENDING_MAX / 2);
    await_closed(callers, STRANGERS, STRANGERS); /* the others once their time is over */
    close_all(callers, STRANGERS);
    crew_listener_free(port.listener);
}

Test(crew_listener, strangers_of_one_address_push_out_none_of_another, .timeout = 120)
{
    struct port port;
    static int callers[STRANGERS];
    allow_descriptors(4096);
    port_open(&port);
    int member = come_from(&port, "127.0.0.1");
    for (unsigned i = 0; i < STRANGERS; i++)
        callers[i] = come_from(&port, "127.0.0.2");
    cr_expect(is_welcome(member));
    close_all(callers, STRANGERS);
    crew_listener_free(port.listener);
}

Test(crew_listener, what_is_no_proof_is_refused_at_once, .timeout = 120)
{
    struct port port;
    struct stranger_summary summary;
    port_open(&port);
    int stranger = come_from(&port, "127.0.0.3");
    cr_assert_eq(send(stranger, "x", 1, MSG_NOSIGNAL), 1);
    cr_expect(opening_is_ended(stranger));
    strangers_take(&summary);
    cr_expect_str_eq(summary.worst, "127.0.0.3");
    cr_expect_str_eq(summary.reason, "it is no member");
    close(stranger);
    crew_listener_free(port.listener);
}

/* Descriptors of the process beyond the lowest free one are not to be had until it is allowed more. */
static rlim_t take_all_descriptors(void)
{
    struct rlimit limit;
    int next = dup(0);
    cr_assert_geq(next, 0);
    close(next);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    rlim_t before = limit.rlim_cur;
    allow_descriptors((rlim_t)next);
    return before;
}

Test(crew_listener, without_descriptors_the_oldest_stranger_gives_back_its_own, .timeout = 120)
{
    struct port port;
    union socket_address to;
    port_open(&port);
    int first = come_from(&port, "127.0.0.1");
    int member = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    usleep(200000); /* it is let in */
    rlim_t before = take_all_descriptors();
    cr_assert_eq(socket_address_parse("127.0.0.1", crew_listener_port(port.listener), &to, NULL), 0);
    cr_assert_eq(connect(member, &to.any, socket_address_size(&to)), 0);
    cr_expect(is_welcome(member));
    cr_expect(opening_is_ended(first));
    allow_descriptors(before);
    close(first);
    crew_listener_free(port.listener);
}

/* accept(2) fails with EMFILE also after the last connection in the queue. */
Test(crew_listener, without_descriptors_a_stranger_leaves_for_a_connection_that_waits_alone, .timeout = 120)
{
    struct port port;
    union socket_address to;
    struct pollfd second = {.events = POLLIN};
    port_open(&port);
    int first = come_from(&port, "127.0.0.1");
    second.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    usleep(200000); /* the first is let in */
    rlim_t before = take_all_descriptors();
    cr_assert_eq(socket_address_parse("127.0.0.1", crew_listener_port(port.listener), &to, NULL), 0);
    cr_assert_eq(connect(second.fd, &to.any, socket_address_size(&to)), 0);
    cr_expect(opening_is_ended(first));
    cr_expect_eq(poll(&second, 1, 500), 0, "the descriptor that the first gave back is the second's");
    allow_descriptors(before);
    close(first);
    close(second.fd);
    crew_listener_free(port.listener);
}

Test(crew_listener, without_descriptors_a_member_waits_until_there_is_one, .timeout = 120)
{
    struct port port;
    union socket_address to;
    port_open(&port);
    int member = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    rlim_t before = take_all_descriptors();
    cr_assert_eq(socket_address_parse("127.0.0.1", crew_listener_port(port.listener), &to, NULL), 0);
    cr_assert_eq(connect(member, &to.any, socket_address_size(&to)), 0);
    while (crew_listener_stuck_ms(port.listener) < 1500)
        usleep(10000);
    cr_expect_eq(atomic_load(&port.members), 0);
    allow_descriptors(before);
    cr_expect(is_welcome(member));
    while (crew_listener_stuck_ms(port.listener) >= 1500)
        usleep(10000);
    crew_listener_free(port.listener);
}
