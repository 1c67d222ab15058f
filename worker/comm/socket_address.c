/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/socket_address.h"

#include <arpa/inet.h>
#include <string.h>

int socket_address_parse(const char *text, uint16_t port, union socket_address *ret_address, struct error *error)
{
    union socket_address address;
    memset(&address, 0, sizeof(address));
    if (inet_pton(AF_INET, text, &address.v4.sin_addr) == 1)
        address.any.sa_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &address.v6.sin6_addr) == 1)
        address.any.sa_family = AF_INET6;
    else
        return error_set(error, ERROR_INVALID, "\"%s\" is not a numeric address", text);
    socket_address_set_port(&address, port);
    *ret_address = address;
    return 0;
}

socklen_t socket_address_size(const union socket_address *address)
{
    return address->any.sa_family == AF_INET6 ? sizeof(address->v6) : sizeof(address->v4);
}

uint16_t socket_address_port(const union socket_address *address)
{
    return ntohs(address->any.sa_family == AF_INET6 ? address->v6.sin6_port : address->v4.sin_port);
}

void socket_address_set_port(union socket_address *address, uint16_t port)
{
    if (address->any.sa_family == AF_INET6)
        address->v6.sin6_port = htons(port);
    else
        address->v4.sin_port = htons(port);
}
