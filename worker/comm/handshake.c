/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/handshake.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "worker/comm/crew_certificates.h"
#include "worker/comm/socket_address.h"

/* What is written goes out at once. */
static void set_no_delay(int socket)
{
    int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool handshake_dial(struct link *link, const char *address, uint16_t port)
{
    union socket_address where;
    if (socket_address_parse(address, port, &where, NULL) < 0)
        return false;
    link->socket = socket(where.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (link->socket < 0)
        return false;
    set_no_delay(link->socket);
    return connect(link->socket, &where.any, socket_address_size(&where)) == 0 || errno == EINPROGRESS;
}

bool handshake_is_connected(const struct link *link)
{
    int failure = 0;
    socklen_t size = sizeof failure;
    return getsockopt(link->socket, SOL_SOCKET, SO_ERROR, &failure, &size) == 0 && failure == 0;
}

int handshake_secure(struct link *link, bool answers, struct error *error)
{
    if (link->tls == NULL && crew_certificates_are_set() &&
        tls_session_new(link->socket, answers, &link->tls, error) < 0)
        return -1;
    return link->tls != NULL ? tls_session_handshake(link->tls, error) : 1;
}

bool handshake_greet(struct link *link, const struct greeting *greeting)
{
    unsigned char bytes[GREETING_BYTES];
    greeting_encode(greeting, bytes);
    return link_write(link, &(struct iovec){bytes, sizeof bytes}, 1) == sizeof bytes;
}

void handshake_answer(struct link *link, enum greeting_answer answer)
{
    unsigned char bytes[GREETING_ANSWER_BYTES];
    greeting_answer_encode(answer, bytes);
    (void)link_write(link, &(struct iovec){bytes, sizeof bytes}, 1);
}

struct guest guest_of(int socket, int64_t now_ns)
{
    set_no_delay(socket);
    return (struct guest){.link = {.socket = socket}, .until_ns = now_ns + HANDSHAKE_NS};
}

enum guest_state guest_hear(struct guest *guest, struct error *error)
{
    int secured = guest->secured ? 1 : handshake_secure(&guest->link, true, error);
    guest->secured = secured > 0;
    if (secured <= 0)
        return secured < 0 ? GUEST_GONE : GUEST_EXPECTED;
    guest->received += link_read(&guest->link, guest->bytes + guest->received, sizeof guest->bytes - guest->received);
    if (guest->received == sizeof guest->bytes)
        return GUEST_GREETED;
    return guest->link.closed ? GUEST_GONE : GUEST_EXPECTED;
}
