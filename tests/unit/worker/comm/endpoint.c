/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/endpoint.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

Test(endpoint, takes_connections_at_the_port_it_names)
{
    struct endpoint *endpoint;
    cr_assert_eq(endpoint_open("127.0.0.1", 0, &endpoint, NULL), 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(endpoint_port(endpoint))};
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    int dialler = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(connect(dialler, (struct sockaddr *)&address, sizeof(address)), 0);
    struct pollfd poll_it = {.fd = endpoint_descriptor(endpoint), .events = POLLIN};
    cr_assert_eq(poll(&poll_it, 1, 10000), 1);
    int taken = accept(endpoint_descriptor(endpoint), NULL, NULL);
    cr_assert_geq(taken, 0);
    cr_assert(accept(endpoint_descriptor(endpoint), NULL, NULL) < 0 && errno == EAGAIN, "it would block");
    close(taken);
    close(dialler);
    endpoint_free(endpoint);
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
