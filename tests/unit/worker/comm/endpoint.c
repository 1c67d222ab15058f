/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/endpoint.h"

#include <criterion/criterion.h>
#include <poll.h>

#include "tests/unit/crew_files.h"
#include "tests/unit/opening.h"
#include "worker/comm/crew_key.h"
#include "worker/comm/strangers.h"

static const struct generation any = {UINT32_MAX, UINT32_MAX, UINT32_MAX};

static struct endpoint *endpoint_open_started(void)
{
    struct endpoint *endpoint;
    cr_assert_eq(endpoint_open("127.0.0.1", 0, &endpoint, NULL), 0);
    cr_assert_eq(endpoint_start(endpoint, NULL), 0);
    return endpoint;
}

static void await_arrival(struct endpoint *endpoint, struct arrival *ret_arrival)
{
    struct pollfd look = {.fd = endpoint_descriptor(endpoint), .events = POLLIN};
    cr_assert_eq(poll(&look, 1, 30000), 1);
    cr_assert(endpoint_take(endpoint, any, ret_arrival));
}

Test(endpoint, a_member_arrives_at_the_port_it_names, .timeout = 120)
{
    struct endpoint *endpoint = endpoint_open_started();
    const struct greeting greeting = {.generation = {1, 2, 3}, .rank = 1, .size = 2, .job_uid = "job"};
    struct opening opening;
    struct arrival arrival;
    int dialler = opening_connect("127.0.0.1", endpoint_port(endpoint));
    opening_greet(dialler, &opening, &greeting);
    await_arrival(endpoint, &arrival);
    cr_expect_eq(arrival.greeting.rank, 1);
    arrival_answer(&arrival, ANSWER_REFUSED);
    cr_expect_eq(opening_hear_answer(dialler, &opening), ANSWER_REFUSED);
    cr_expect_not(endpoint_take(endpoint, any, &arrival));
    link_release(&arrival.link);
    close(dialler);
    endpoint_free(endpoint);
}

Test(endpoint, the_last_connection_of_a_rank_that_dials_again_stands, .timeout = 120)
{
    struct endpoint *endpoint = endpoint_open_started();
    const struct greeting greeting = {.generation = {1, 2, 3}, .rank = 1, .size = 2, .job_uid = "job"};
    struct opening first, second;
    struct arrival arrival;
    int given_up = opening_connect("127.0.0.1", endpoint_port(endpoint));
    opening_greet(given_up, &first, &greeting);
    int dialler = opening_connect("127.0.0.1", endpoint_port(endpoint));
    opening_greet(dialler, &second, &greeting);
    cr_expect_eq(opening_hear_answer(given_up, &first), 0, "it is closed");
    await_arrival(endpoint, &arrival);
    arrival_answer(&arrival, ANSWER_TCP);
    cr_expect_eq(opening_hear_answer(dialler, &second), ANSWER_TCP);
    link_release(&arrival.link);
    close(given_up);
    close(dialler);
    endpoint_free(endpoint);
}

/* A stranger that sends `bytes` is refused for this reason. */
static void expect_refused(const struct endpoint *endpoint, const char *bytes, const char *reason)
{
    struct stranger_summary summary;
    int stranger = opening_connect("127.0.0.1", endpoint_port(endpoint));
    cr_assert_eq(send(stranger, bytes, strlen(bytes), MSG_NOSIGNAL), (ssize_t)strlen(bytes));
    while (!opening_is_ended(stranger)) {
    }
    close(stranger);
    strangers_take(&summary);
    cr_expect_eq(summary.refused, 1);
    cr_expect_str_eq(summary.worst, "127.0.0.1");
    cr_expect_eq(summary.port, STRANGER_DATA_PORT);
    cr_expect(strstr(summary.reason, reason), "%s", summary.reason);
}

Test(endpoint, strangers_are_named_with_the_reason, .timeout = 120)
{
    struct endpoint *endpoint = endpoint_open_started();
    char noise[GREETING_BYTES + 1] = "CXG2";
    memset(noise + 4, 'x', GREETING_BYTES - 4);
    noise[GREETING_BYTES] = '\0';
    expect_refused(endpoint, noise, "damaged");
    expect_refused(endpoint, "GET / HTTP/1.1\r\n\r\n", "something else than a greeting");
    expect_refused(endpoint, "CXG", "in time");
    endpoint_free(endpoint);
}

Test(endpoint, with_certificates_strangers_must_speak_the_crews_tls, .timeout = 120)
{
    struct crew_files files;
    crew_files_open(&files);
    crew_files_make(&files, CREW_TLS_EVEN, -1);
    cr_assert_eq(crew_certificates_open(files.directory, NULL), 0);
    struct endpoint *endpoint = endpoint_open_started();
    expect_refused(endpoint, "GET / HTTP/1.1\r\n\r\n", "does not speak TLS");
    expect_refused(endpoint, "\x16\x03\x01garbage", "TLS");
    expect_refused(endpoint, "", "in time");
    endpoint_free(endpoint);
    crew_files_close(&files);
}

Test(endpoint, a_port_that_is_taken_is_passed_over)
{
    struct endpoint *first, *second;
    cr_assert_eq(endpoint_open("127.0.0.1", 0, &first, NULL), 0);
    cr_assert_eq(endpoint_open("127.0.0.1", endpoint_port(first), &second, NULL), 0);
    cr_assert_neq(endpoint_port(second), endpoint_port(first));
    cr_assert_neq(endpoint_port(second), 0);
    endpoint_free(second);
    endpoint_free(first);
}

Test(endpoint, names_are_not_addresses)
{
    struct endpoint *endpoint;
    struct error error = ERROR_INIT;
    cr_assert_eq(endpoint_open("worker-1.crew", 0, &endpoint, &error), -1);
    cr_assert_eq(error.kind, ERROR_INVALID, "%s", error.message);
    cr_assert_eq(endpoint_open("192.0.2.1", 0, &endpoint, NULL), -1, "not ours to bind");
    endpoint_free(NULL);
}
