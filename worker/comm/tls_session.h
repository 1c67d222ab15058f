/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs TLS 1.3 (RFC 8446) over a connection between two pods of a job, without blocking. Links (link.h) read and write
 * through it. No other file includes OpenSSL's TLS.
 *
 * With certificates (crew_certificates.h), both sides present the job's certificate. Without them, both use a
 * pre-shared key that is derived from the job's key (crew_key.h) and the job's UID, with an ephemeral Diffie-Hellman
 * exchange, so that recorded traffic stays secret if the key leaks later. A process without a key uses a secret of
 * zeros, which proves nothing.
 */
#ifndef COXSWAIN_COMM_TLS_SESSION_H
#define COXSWAIN_COMM_TLS_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "common/error.h"

struct tls_session;

/* Creates a session over a connected, non-blocking socket. The caller keeps the socket and must close it after the session is freed.
 * `answers`: this is the side that was dialled. Certificates that have changed since the last session are read again. */
int tls_session_new(int socket, bool answers, struct tls_session **ret_session, struct error *error);
void tls_session_free(struct tls_session *session);

/* Continues the handshake. Returns 1 if both sides have proven themselves, 0 if it must be called again after tls_session_events, -1 on
 * failure: ERROR_FORBIDDEN, or ERROR_UNAVAILABLE if the connection broke. */
int tls_session_handshake(struct tls_session *session, struct error *error);

/* Like link_write and link_read. The next write must begin with the bytes that this one did not take. *closed is set if the connection has
 * ended or was tampered with. */
size_t tls_session_write(struct tls_session *session, const struct iovec *parts, int count, bool *closed);
size_t tls_session_read(struct tls_session *session, void *bytes, size_t length, bool *closed);

#define TLS_BINDING_BYTES 32
/* Returns a value that only the two ends of this session know (RFC 9266). Call it after the handshake. */
int tls_session_binding(struct tls_session *session, unsigned char ret_binding[TLS_BINDING_BYTES], struct error *error);

/* Returns the events to poll for: POLLIN, POLLOUT. */
short tls_session_events(const struct tls_session *session, bool reads, bool writes);
/* Returns whether there are bytes to read that were already taken from the socket. */
bool tls_session_has_input(const struct tls_session *session);

/* Makes each read take all bytes that the socket has, instead of one record's head and then its body, which saves system calls. Call it before
 * the handshake. The session may then hold bytes that poll(2) does not report, so the caller must ask tls_session_has_unread after each read. */
void tls_session_read_ahead(struct tls_session *session);
/* Returns whether the session holds bytes that were taken from the socket, even if they are only a part of a record, which cannot be read yet. */
bool tls_session_has_unread(const struct tls_session *session);

#endif
