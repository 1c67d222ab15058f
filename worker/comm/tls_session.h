/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS 1.3 (RFC 8446) over a connection between two pods of a crew, without
 * blocking. The only file of the worker that knows OpenSSL.
 *
 * With certificates (crew_certificates.h) both sides present the crew's. Without
 * them both prove a secret that is derived from the job's key (crew_key.h) and
 * the job's UID: an external pre-shared key with an ephemeral Diffie-Hellman
 * exchange, so that recorded traffic stays secret when the key leaks later.
 * A process without a key uses a secret of zeros, which proves nothing.
 */
#ifndef COXSWAIN_COMM_TLS_SESSION_H
#define COXSWAIN_COMM_TLS_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "common/error.h"

struct tls_session;

/* Over a connected non-blocking socket, which stays the caller's and is closed after the session. `answers`: the side that was
 * dialled. Certificates are read again for each session. */
int tls_session_new(int socket, bool answers, struct tls_session **ret_session, struct error *error);
void tls_session_free(struct tls_session *session);

/* 1: each side has proven itself; 0: call again when the socket has tls_session_events; -1: ERROR_FORBIDDEN, or ERROR_UNAVAILABLE
 * when the connection broke. */
int tls_session_handshake(struct tls_session *session, struct error *error);

/* As link_write and link_read. Bytes that were not taken over must come again, first, in the next call. `*closed` is set when
 * the connection is over or was tampered with. */
size_t tls_session_write(struct tls_session *session, const struct iovec *parts, int count, bool *closed);
size_t tls_session_read(struct tls_session *session, void *bytes, size_t length, bool *closed);

#define TLS_BINDING_BYTES 32
/* After the handshake: a value that only the two ends of this session know, the same on both (RFC 9266). */
int tls_session_binding(struct tls_session *session, unsigned char ret_binding[TLS_BINDING_BYTES], struct error *error);

/* For poll(2): POLLIN, POLLOUT. */
short tls_session_events(const struct tls_session *session, bool reads, bool writes);
/* There is something to read that the socket has already given. */
bool tls_session_has_input(const struct tls_session *session);

#endif
