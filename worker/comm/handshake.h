/* SPDX-License-Identifier: Apache-2.0
 *
 * How a data connection begins, for the mesh of a crew as for lines (bulk_line.h): one side dials; with certificates both show
 * theirs; it sends its greeting (frame.h), and the other, to which it is a guest until then, answers. Nothing here blocks.
 */
#ifndef COXSWAIN_COMM_HANDSHAKE_H
#define COXSWAIN_COMM_HANDSHAKE_H

#include <stdint.h>

#include "common/error.h"
#include "worker/comm/frame.h"
#include "worker/comm/link.h"

/* Either side gives up when it has taken longer than this. */
#define HANDSHAKE_NS (2000 * 1000000LL)

/* Begins to connect. False: it cannot; the link may have a socket all the same. */
bool handshake_dial(struct link *link, const char *address, uint16_t port);
/* Asked when poll(2) says that connecting has ended: whether it has succeeded. */
bool handshake_is_connected(const struct link *link);
/* With certificates, nothing is said before both sides have shown theirs. 1: now it can be; 0: not yet; -1: never. */
int handshake_secure(struct link *link, bool answers, struct error *error);
/* False: not all of it went out. */
bool handshake_greet(struct link *link, const struct greeting *greeting);
void handshake_answer(struct link *link, enum greeting_answer answer);

/* A connection made to us, which has not said yet whose it is. */
struct guest {
    struct link link;
    bool secured;
    int64_t until_ns;
    size_t received;
    unsigned char bytes[GREETING_BYTES];
};

enum guest_state { GUEST_EXPECTED, GUEST_GREETED, GUEST_GONE };

/* Of a socket that accept(2) has given. */
struct guest guest_of(int socket, int64_t now_ns);
/* Takes in what has come of its greeting. GREETED: `bytes` has all of it. GONE: none will come; `error` is filled where TLS failed. */
enum guest_state guest_hear(struct guest *guest, struct error *error);

#endif
