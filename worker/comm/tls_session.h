/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS 1.3 over a data connection (RFC 8446), both sides with the crew's
 * certificates (crew_certificates.h). Nothing here blocks. OpenSSL does the work;
 * its one wrapper in the worker.
 */
#ifndef COXSWAIN_COMM_TLS_SESSION_H
#define COXSWAIN_COMM_TLS_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "common/error.h"

struct tls_session;

/* Over a connected non-blocking socket, which stays the caller's and is closed after the session. `answers`: the side that was
 * dialled. Presents what is the crew's now. */
int tls_session_new(int socket, bool answers, struct tls_session **ret_session, struct error *error);
void tls_session_free(struct tls_session *session);

/* 1: both know each other; 0: call again when the socket has tls_session_events; -1: with a sentence why not. */
int tls_session_handshake(struct tls_session *session, struct error *error);

/* As link_write and link_read. Bytes that were not taken over must come again, first, in the next call. `*closed` is set when
 * the connection is over or was tampered with. */
size_t tls_session_write(struct tls_session *session, const struct iovec *parts, int count, bool *closed);
size_t tls_session_read(struct tls_session *session, void *bytes, size_t length, bool *closed);

/* For poll(2): POLLIN, POLLOUT. */
short tls_session_events(const struct tls_session *session, bool reads, bool writes);
/* There is something to read that the socket has already given. */
bool tls_session_has_input(const struct tls_session *session);

#endif
