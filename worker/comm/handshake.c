/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/handshake.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "worker/comm/crew_certificates.h"
#include "worker/comm/socket_address.h"

void handshake_set_no_delay(int socket)
{
    int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void handshake_dial(struct handshake *handshake, struct link *link, const char *address, uint16_t port)
{
    union socket_address where;
    *handshake = (struct handshake){.phase = HANDSHAKE_FAILED};
    if (socket_address_parse(address, port, &where, NULL) < 0)
        return;
    link->socket = socket(where.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (link->socket < 0)
        return;
    handshake_set_no_delay(link->socket);
    if (connect(link->socket, &where.any, socket_address_size(&where)) == 0 || errno == EINPROGRESS)
        handshake->phase = HANDSHAKE_CONNECTING;
}

int handshake_secure(struct link *link, bool answers, struct error *error)
{
    if (link->tls == NULL && crew_certificates_are_set() &&
        tls_session_new(link->socket, answers, &link->tls, error) < 0)
        return -1;
    return link->tls != NULL ? tls_session_handshake(link->tls, error) : 1;
}

static bool is_connected(const struct link *link)
{
    int failure = 0;
    socklen_t size = sizeof failure;
    return getsockopt(link->socket, SOL_SOCKET, SO_ERROR, &failure, &size) == 0 && failure == 0;
}

/* True: all of the message is there. */
static bool receive(struct handshake *handshake, struct link *link, unsigned char *bytes, size_t length)
{
    handshake->received += link_read(link, bytes + handshake->received, length - handshake->received);
    if (handshake->received == length)
        return true;
    if (link->closed)
        handshake->phase = HANDSHAKE_FAILED;
    return false;
}

void handshake_advance(struct handshake *handshake, struct link *link, struct error *error)
{
    if (handshake->phase == HANDSHAKE_CONNECTING)
        handshake->phase = is_connected(link) ? HANDSHAKE_SECURING : HANDSHAKE_FAILED;
    if (handshake->phase == HANDSHAKE_SECURING) {
        int secured = handshake_secure(link, false, error);
        if (secured != 0)
            handshake->phase = secured > 0 ? HANDSHAKE_CHALLENGED : HANDSHAKE_FAILED;
    }
    struct opening *opening = &handshake->opening;
    if (handshake->phase == HANDSHAKE_CHALLENGED &&
        receive(handshake, link, opening->challenge, sizeof opening->challenge))
        handshake->phase = challenge_check(opening, error) == 0 ? HANDSHAKE_GREET : HANDSHAKE_FAILED;
    else if (handshake->phase == HANDSHAKE_GREETED &&
             receive(handshake, link, handshake->answer_bytes, sizeof handshake->answer_bytes))
        handshake->phase = greeting_answer_decode(handshake->answer_bytes, opening, &handshake->answer, error) == 0
                               ? HANDSHAKE_ANSWERED
                               : HANDSHAKE_FAILED;
}

void handshake_greet(struct handshake *handshake, struct link *link, const struct greeting *greeting)
{
    struct opening *opening = &handshake->opening;
    bool sent = greeting_encode(greeting, opening, NULL) == 0 &&
                link_write(link, &(struct iovec){opening->greeting, GREETING_BYTES}, 1) == GREETING_BYTES;
    handshake->received = 0;
    handshake->phase = sent ? HANDSHAKE_GREETED : HANDSHAKE_FAILED;
}
