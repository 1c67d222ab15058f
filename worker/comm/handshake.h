/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a data connection from the dialling side: connects, sets up TLS if the job has certificates, and exchanges
 * challenge, greeting and answer (frame.h). Used for the links between all ranks (mesh.h) and for bulk connections
 * (bulk_connection.h); endpoint.h is the other side.
 *
 * No function blocks: the caller polls the link's socket and calls handshake_advance until the phase is ANSWERED or
 * FAILED.
 */
#ifndef COXSWAIN_COMM_HANDSHAKE_H
#define COXSWAIN_COMM_HANDSHAKE_H

#include <stdint.h>

#include "common/error.h"
#include "worker/comm/frame.h"
#include "worker/comm/link.h"

/* A dialler that has not been able to send its greeting after this time dials again. */
#define HANDSHAKE_NS (2000 * 1000000LL)

enum handshake_phase {
    HANDSHAKE_CONNECTING,
    HANDSHAKE_SECURING,   /* the TLS handshake is under way */
    HANDSHAKE_CHALLENGED, /* waits for the challenge */
    HANDSHAKE_GREET,      /* the caller must call handshake_greet */
    HANDSHAKE_GREETED,    /* waits for the answer */
    HANDSHAKE_ANSWERED,   /* `answer` is set */
    HANDSHAKE_FAILED,
};

struct handshake {
    enum handshake_phase phase;
    struct opening opening;
    unsigned char answer_bytes[GREETING_ANSWER_BYTES];
    size_t received; /* bytes of the message that is being received */
    enum greeting_answer answer;
};

/* Begins to connect. If that fails, the phase is FAILED at once; the link may have a socket nevertheless. */
void handshake_dial(struct handshake *handshake, struct link *link, const char *address, uint16_t port);
/* Continues the handshake. Call it when poll(2) reports the link's socket: writable while the phase is CONNECTING, readable after that.
 * If TLS or the check of a proof fails, the phase is FAILED and `error` is filled. If connecting fails, or the other side closes the
 * connection, the phase is FAILED too, but `error` is not set. */
void handshake_advance(struct handshake *handshake, struct link *link, struct error *error);
/* In phase GREET: sends the greeting with a proof of the crew's key. The phase is GREETED or FAILED afterwards. */
void handshake_greet(struct handshake *handshake, struct link *link, const struct greeting *greeting);

/* With certificates, continues the TLS handshake, in which both sides present theirs. Returns 1 if it is complete (or there are no
 * certificates), 0 if it must be called again later, -1 if it failed. `answers`: this is the side that was dialled. */
int handshake_secure(struct link *link, bool answers, struct error *error);
/* Sets TCP_NODELAY. */
void handshake_set_no_delay(int socket);

#endif
