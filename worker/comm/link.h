/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends and receives bytes on a connection to one peer, whatever it runs over. Collectives, bulk connections and the
 * connections of gRPC are built on links. Over TCP the bytes go through the socket, encrypted if there is a TLS
 * session. With a ring (shared_ring.h) they go through shared memory; the socket then only carries the bytes that wake
 * a sleeping peer, and shows when the peer dies.
 *
 * No function blocks. A link has no lock; its owner must keep threads apart.
 */
#ifndef COXSWAIN_COMM_LINK_H
#define COXSWAIN_COMM_LINK_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "worker/comm/shared_ring.h"
#include "worker/comm/tls_session.h"

struct link {
    int socket;               /* -1: none */
    struct tls_session *tls;  /* NULL: in the clear */
    struct shared_ring *ring; /* NULL: TCP */
    bool dry;                 /* the last read emptied the socket, so the next one returns 0 without a system call */
    bool closed;              /* the peer is gone; bytes that it sent before may still be readable */
};

/* Makes a link without a socket; the owner then sets `socket` and, if need be, `tls`, which the link owns from then on. */
void link_init(struct link *link);
/* Closes the socket, and frees the TLS session and the ring. */
void link_release(struct link *link);
/* Switches to shared memory; the link owns the ring from then on. Ends the TLS session, since the socket then carries no data. */
void link_take_ring(struct link *link, struct shared_ring *ring);

/* Writes as many bytes as fit and returns their number; 0 also if the peer is gone (`closed`). */
size_t link_write(struct link *link, const struct iovec *parts, int count);

/* Reads and returns the number of bytes; 0 if there are none. After a read that emptied the socket, the next call returns 0 without a
 * system call, which serves callers that read until they get 0. */
size_t link_read(struct link *link, void *bytes, size_t length);

/* Call it before poll(2): fills `ret_poll`, and tells the peer to wake this side. `reads`, `writes`: what to wait for. Returns false if the
 * caller must not sleep, because something can be done already. */
bool link_prepare_poll(struct link *link, bool reads, bool writes, struct pollfd *ret_poll);

/* Call it after poll(2): consumes the peer's wake-up bytes and notices if the peer is gone. */
void link_after_poll(struct link *link, const struct pollfd *poll);

#endif
