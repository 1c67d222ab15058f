/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "common/memory.h"
#include "common/scope.h"
#include "worker/comm/socket_address.h"

struct endpoint {
    int descriptor;
    uint16_t port;
};

static int bind_or_any_port(int descriptor, union socket_address *address, struct error *error)
{
    if (bind(descriptor, &address->any, socket_address_size(address)) == 0)
        return 0;
    if (errno != EADDRINUSE)
        return error_set_errno(error, "bind the data plane");
    socket_address_set_port(address, 0);
    if (bind(descriptor, &address->any, socket_address_size(address)) < 0)
        return error_set_errno(error, "bind the data plane");
    return 0;
}

int endpoint_open(const char *address, uint16_t port, struct endpoint **ret_endpoint, struct error *error)
{
    union socket_address where;
    if (socket_address_parse(address == NULL || *address == '\0' ? "0.0.0.0" : address, port, &where, error) < 0)
        return -1;
    SCOPED_CLOSE int descriptor = socket(where.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return error_set_errno(error, "open the data plane's socket");
    int on = 1;
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind_or_any_port(descriptor, &where, error) < 0)
        return -1;
    if (listen(descriptor, SOMAXCONN) < 0)
        return error_set_errno(error, "listen on the data plane");
    socklen_t size = sizeof(where);
    if (getsockname(descriptor, &where.any, &size) < 0)
        return error_set_errno(error, "ask for the data plane's port");
    struct endpoint *endpoint = memory_allocate(1, sizeof(*endpoint));
    *endpoint = (struct endpoint){.descriptor = descriptor, .port = socket_address_port(&where)};
    descriptor = -1;
    *ret_endpoint = endpoint;
    return 0;
}

void endpoint_free(struct endpoint *endpoint)
{
    if (endpoint == NULL)
        return;
    close(endpoint->descriptor);
    free(endpoint);
}

uint16_t endpoint_port(const struct endpoint *endpoint)
{
    return endpoint->port;
}

int endpoint_descriptor(const struct endpoint *endpoint)
{
    return endpoint->descriptor;
}
