/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/link.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "worker/comm/traffic.h"

void link_init(struct link *link)
{
    *link = (struct link){.socket = -1};
}

void link_release(struct link *link)
{
    shared_ring_free(link->ring);
    tls_session_free(link->tls);
    if (link->socket >= 0)
        close(link->socket);
    link_init(link);
}

void link_take_ring(struct link *link, struct shared_ring *ring)
{
    tls_session_free(link->tls);
    link->tls = NULL;
    link->ring = ring;
}

/* A full socket has bells enough in it. */
static void ring_bell(struct link *link)
{
    if (send(link->socket, "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN && errno != EINTR)
        link->closed = true;
}

static size_t socket_result(struct link *link, ssize_t moved)
{
    if (moved >= 0)
        return (size_t)moved;
    if (errno != EAGAIN && errno != EINTR)
        link->closed = true;
    return 0;
}

static size_t ring_write(struct link *link, const struct iovec *parts, int count)
{
    size_t total = 0;
    for (int i = 0; i < count; i++) {
        bool bell = false;
        size_t moved = shared_ring_write(link->ring, parts[i].iov_base, parts[i].iov_len, &bell);
        if (bell)
            ring_bell(link);
        total += moved;
        if (moved < parts[i].iov_len)
            break;
    }
    return total;
}

static size_t socket_write(struct link *link, const struct iovec *parts, int count)
{
    struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = (size_t)count};
    return socket_result(link, sendmsg(link->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL));
}

size_t link_write(struct link *link, const struct iovec *parts, int count)
{
    if (link->closed)
        return 0;
    size_t written = link->ring != NULL  ? ring_write(link, parts, count)
                     : link->tls != NULL ? tls_session_write(link->tls, parts, count, &link->closed)
                                         : socket_write(link, parts, count);
    traffic_count(written);
    return written;
}

static size_t socket_read(struct link *link, void *bytes, size_t length)
{
    if (link->dry) {
        link->dry = false;
        return 0;
    }
    ssize_t moved = recv(link->socket, bytes, length, MSG_DONTWAIT);
    if (moved == 0)
        link->closed = true;
    link->dry = moved > 0 && (size_t)moved < length;
    return socket_result(link, moved);
}

size_t link_read(struct link *link, void *bytes, size_t length)
{
    if (link->ring != NULL) {
        bool bell = false;
        size_t moved = shared_ring_read(link->ring, bytes, length, &bell);
        if (bell)
            ring_bell(link);
        return moved;
    }
    if (link->closed)
        return 0;
    if (link->tls != NULL)
        return tls_session_read(link->tls, bytes, length, &link->closed);
    return socket_read(link, bytes, length);
}

bool link_prepare_poll(struct link *link, bool reads, bool writes, struct pollfd *ret_poll)
{
    *ret_poll = (struct pollfd){.fd = link->closed ? -1 : link->socket};
    if (link->ring == NULL) {
        ret_poll->events = link->tls != NULL ? tls_session_events(link->tls, reads, writes)
                                             : (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
        return !reads || link->tls == NULL || !tls_session_has_input(link->tls);
    }
    ret_poll->events = POLLIN;
    return shared_ring_may_sleep(link->ring, reads, writes);
}

void link_after_poll(struct link *link, const struct pollfd *poll)
{
    if (link->ring == NULL || poll->revents == 0)
        return;
    char bells[64];
    ssize_t got = recv(link->socket, bells, sizeof(bells), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        link->closed = true;
}
