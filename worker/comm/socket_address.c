/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/socket_address.h"

#include <arpa/inet.h>
#include <stdio.h>
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

void socket_address_format_host(const union socket_address *address, char ret_text[INET6_ADDRSTRLEN])
{
    bool six = address->any.sa_family == AF_INET6;
    snprintf(ret_text, INET6_ADDRSTRLEN, "?");
    if (six || address->any.sa_family == AF_INET)
        inet_ntop(address->any.sa_family, six ? (const void *)&address->v6.sin6_addr : &address->v4.sin_addr, ret_text,
                  INET6_ADDRSTRLEN);
}

void socket_address_format(const union socket_address *address, char ret_text[SOCKET_ADDRESS_TEXT_MAX])
{
    char host[INET6_ADDRSTRLEN];
    socket_address_format_host(address, host);
    snprintf(ret_text, SOCKET_ADDRESS_TEXT_MAX, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host,
             socket_address_port(address));
}

bool socket_address_same_host(const union socket_address *a, const union socket_address *b)
{
    if (a->any.sa_family != b->any.sa_family)
        return false;
    if (a->any.sa_family != AF_INET6)
        return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
    size_t prefix = IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr) ? sizeof(a->v6.sin6_addr) : 8;
    return memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, prefix) == 0;
}
