/* SPDX-License-Identifier: Apache-2.0
 *
 * How a data connection begins, for the mesh of a crew and for lines (bulk_line.h).
 * This is the dialling side, up to the answer; endpoint.h is the side that is dialled.
 * With certificates, TLS comes first. Nothing here blocks.
 */
#ifndef COXSWAIN_COMM_HANDSHAKE_H
#define COXSWAIN_COMM_HANDSHAKE_H

#include <stdint.h>

#include "common/error.h"
#include "worker/comm/frame.h"
#include "worker/comm/link.h"

/* How long a dialler waits until it can send its greeting, before it dials again. */
#define HANDSHAKE_NS (2000 * 1000000LL)

/* CONNECTING, SECURING, CHALLENGED (the challenge is to come) by itself; GREET: the caller's turn, handshake_greet; GREETED: the answer
 * is to come; ANSWERED: `answer` has it; FAILED. */
enum handshake_phase {
    HANDSHAKE_CONNECTING,
    HANDSHAKE_SECURING,
    HANDSHAKE_CHALLENGED,
    HANDSHAKE_GREET,
    HANDSHAKE_GREETED,
    HANDSHAKE_ANSWERED,
    HANDSHAKE_FAILED,
};

struct handshake {
    enum handshake_phase phase;
    struct opening opening;
    unsigned char answer_bytes[GREETING_ANSWER_BYTES];
    size_t received; /* of the message that is to come */
    enum greeting_answer answer;
};

/* Begins to connect. FAILED at once where it cannot; the link may have a socket all the same. */
void handshake_dial(struct handshake *handshake, struct link *link, const char *address, uint16_t port);
/* What can be done once poll(2) reports the link: writable while CONNECTING, readable after that. `error` is filled where TLS or a
 * proof failed. */
void handshake_advance(struct handshake *handshake, struct link *link, struct error *error);
/* In phase GREET: proves the crew's key and goes on to GREETED, or FAILED. */
void handshake_greet(struct handshake *handshake, struct link *link, const struct greeting *greeting);

/* With certificates, both sides show theirs before anything is said. 1: both are known; 0: later; -1: never. `answers`: the side that was
 * dialled. */
int handshake_secure(struct link *link, bool answers, struct error *error);
/* What is written on this socket goes out at once. */
void handshake_set_no_delay(int socket);

#endif
