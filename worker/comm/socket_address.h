/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses and formats numeric IPv4 and IPv6 addresses with ports.
 */
#ifndef COXSWAIN_COMM_SOCKET_ADDRESS_H
#define COXSWAIN_COMM_SOCKET_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/error.h"

union socket_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* ERROR_INVALID if the text is neither an IPv4 nor an IPv6 address. */
int socket_address_parse(const char *text, uint16_t port, union socket_address *ret_address, struct error *error);
socklen_t socket_address_size(const union socket_address *address);
uint16_t socket_address_port(const union socket_address *address);
void socket_address_set_port(union socket_address *address, uint16_t port);

/* Writes "10.1.2.3:2222" or "[fd00::3]:2222". */
#define SOCKET_ADDRESS_TEXT_MAX 64
void socket_address_format(const union socket_address *address, char ret_text[SOCKET_ADDRESS_TEXT_MAX]);
/* Writes the address without the port: "10.1.2.3" or "fd00::3". */
void socket_address_format_host(const union socket_address *address, char ret_text[INET6_ADDRSTRLEN]);
/* Returns whether two addresses can belong to one host: equal IPv4 addresses, or IPv6 addresses of the same /64. */
bool socket_address_same_host(const union socket_address *a, const union socket_address *b);

#endif
