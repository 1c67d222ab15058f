/* SPDX-License-Identifier: Apache-2.0
 *
 * A two-way stream of bytes to one peer. Nothing here blocks. Over TCP the bytes
 * go through the socket, encrypted where there is a session; with a ring they go through shared memory, and the
 * socket carries only the bells that wake a sleeper, and shows the peer's death.
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
    bool dry;                 /* the last read of the socket took all that had come: the next need not ask */
    bool closed;              /* the peer has gone; what it sent before may still be readable */
};

void link_init(struct link *link);
void link_release(struct link *link);
/* From now on through shared memory. A bell says nothing that anybody may not know: what encrypted the socket ends. */
void link_take_ring(struct link *link, struct shared_ring *ring);

/* Bytes taken over, as many as fit; 0 when none do, or when the peer has gone (`closed`). */
size_t link_write(struct link *link, const struct iovec *parts, int count);
/* Bytes read; 0 when there are none, or were none behind those that the read before this one has taken: who reads until it gives 0
 * spares a call. */
size_t link_read(struct link *link, void *bytes, size_t length);

/* Before poll(2): announces sleep and fills `ret_poll`. False: do not sleep, there is something to do. `reads`, `writes`: what is
 * waited for. */
bool link_prepare_poll(struct link *link, bool reads, bool writes, struct pollfd *ret_poll);
/* After poll(2): takes in bells and notices the end. */
void link_after_poll(struct link *link, const struct pollfd *poll);

#endif
