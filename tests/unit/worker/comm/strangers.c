/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/strangers.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>
#include <string.h>

Test(strangers, are_counted_for_each_port_and_logged_once_in_ten_seconds)
{
    union socket_address address;
    cr_redirect_stderr();
    cr_assert_eq(socket_address_parse("10.1.2.3", 2222, &address, NULL), 0);
    for (int i = 0; i < 100; i++)
        strangers_refuse(STRANGER_CONTROL_PORT, &address, "it said nothing for 5 s");
    strangers_evict(STRANGER_CONTROL_PORT, &address);
    cr_assert_eq(strangers_count(STRANGER_CONTROL_PORT).refused, 101);
    cr_assert_eq(strangers_count(STRANGER_CONTROL_PORT).door_full, 1);
    cr_assert_eq(strangers_count(STRANGER_DATA_PORT).refused, 0);
    fflush(stderr);
    char text[8192] = "";
    FILE *log = cr_get_redirected_stderr();
    size_t length = fread(text, 1, sizeof text - 1, log);
    text[length] = '\0';
    const char *line = strstr(text, "refused a connection port=control address=10.1.2.3:2222");
    cr_assert_not_null(line, "%s", text);
    cr_assert_null(strstr(line + 1, "refused a connection"), "one line: %s", text);
}

Test(strangers, addresses_are_written_and_compared_without_their_ports)
{
    char text[SOCKET_ADDRESS_TEXT_MAX];
    union socket_address four, other_port, six;
    cr_assert_eq(socket_address_parse("10.1.2.3", 1, &four, NULL), 0);
    cr_assert_eq(socket_address_parse("10.1.2.3", 2, &other_port, NULL), 0);
    cr_assert_eq(socket_address_parse("fd00::3", 1, &six, NULL), 0);
    cr_assert(socket_address_same_host(&four, &other_port));
    cr_assert_not(socket_address_same_host(&four, &six));
    cr_assert(socket_address_same_host(&six, &six));
    socket_address_format(&six, text);
    cr_assert_str_eq(text, "[fd00::3]:1");
}

static void refuse_from(const char *host, unsigned times)
{
    union socket_address from;
    cr_assert_eq(socket_address_parse(host, 4711, &from, NULL), 0);
    for (unsigned i = 0; i < times; i++)
        strangers_refuse(STRANGER_DATA_PORT, &from, host);
}

Test(strangers, the_most_frequent_address_is_named_among_many)
{
    struct stranger_summary summary;
    char host[32];
    cr_redirect_stderr();
    for (unsigned round = 0; round < 10; round++) {
        refuse_from("10.9.8.7", 20);
        for (unsigned i = 0; i < 50; i++) {
            snprintf(host, sizeof host, "10.0.%u.%u", round, i);
            refuse_from(host, 1);
        }
    }
    strangers_take(&summary);
    cr_expect_eq(summary.refused, 700);
    cr_expect_str_eq(summary.worst, "10.9.8.7");
    cr_expect_str_eq(summary.reason, "10.9.8.7");
    cr_expect_geq(summary.from_worst, 200);
    strangers_take(&summary);
    cr_expect(summary.refused == 0 && summary.worst[0] == '\0', "they are reported once");
}

Test(strangers, addresses_of_one_ipv6_subnet_are_one_host)
{
    struct stranger_summary summary;
    cr_redirect_stderr();
    refuse_from("2001:db8:1:2::1", 2);
    refuse_from("2001:db8:1:2:3:4:5:6", 2);
    refuse_from("2001:db8:1:3::1", 3);
    refuse_from("::ffff:10.0.0.1", 1);
    refuse_from("::ffff:10.0.0.2", 1);
    strangers_take(&summary);
    cr_expect_eq(summary.refused, 9);
    cr_expect_eq(summary.from_worst, 4);
}
