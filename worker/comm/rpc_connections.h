/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the network connections on which gRPC runs, for rpc.h; gRPC itself neither listens nor dials. One thread per
 * `rpc` accepts and dials connections, authenticates and encrypts them (tls_session.h, crew_hello.h), and only then
 * hands gRPC one end of a local socket pair. It copies bytes between the pair's other end and the connection, so gRPC
 * never sees a byte from a process that is not of the job. The rpc's thread copies as well, after it has written
 * (rpc_connections_carry).
 *
 * A connection that has not yet proved that it belongs to the job is a stranger. There are at most STRANGERS_MAX
 * strangers at a time, each for at most STRANGER_MS. When another one comes, the address with the most strangers loses
 * its oldest. When the process has no file descriptor left, strangers are closed first to free theirs; a spare
 * descriptor lets the listening socket go on accepting even then.
 */
#ifndef COXSWAIN_COMM_RPC_CONNECTIONS_H
#define COXSWAIN_COMM_RPC_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/comm/crew_hello.h"

/* Room for all members of the largest crew at once. */
#define STRANGERS_MAX 192
#define STRANGER_MS 5000
/* A dialled connection that has not been authenticated by both sides after this time fails. */
#define DIAL_MS 10000

struct rpc_connections;
struct rpc_dialled;

/* Starts the thread. Also raises the process's limit of file descriptors to the hard limit. */
int rpc_connections_start(struct rpc_connections **ret_connections, struct error *error);
/* Sends the bytes that gRPC has written, for at most a second, then closes all connections and frees them. gRPC's ends of the socket pairs must
 * be closed, or about to be closed. */
void rpc_connections_free(struct rpc_connections *connections);

/* Called on the connections' thread with gRPC's end of an accepted and authenticated connection; the callee owns `descriptor`. */
typedef void rpc_accepted(void *context, int descriptor);
/* Listens on `address` (numeric; NULL or "": all interfaces) and `port` (0: any free one). */
int rpc_connections_listen(struct rpc_connections *connections, const char *address, uint16_t port,
                           rpc_accepted *accepted, void *context, uint16_t *ret_port, struct error *error);
/* Closes the listening socket that was opened with `context`; `accepted` is not called after it returns. */
void rpc_connections_shut(struct rpc_connections *connections, const void *context);

/* Begins to connect to a peer. *ret_descriptor is gRPC's end of the socket pair: it can be written to at once, and reads as closed if the
 * connection fails. The caller releases *ret_dialled, from which it can learn why. */
int rpc_connections_dial(struct rpc_connections *connections, const char *address, uint16_t port,
                         const unsigned char token[CONNECTION_TOKEN_BYTES], int *ret_descriptor,
                         struct rpc_dialled **ret_dialled, struct error *error);
/* Returns -1, with the reason, if the connection could not be established. */
int rpc_dialled_result(struct rpc_dialled *dialled, struct error *error);
void rpc_dialled_release(struct rpc_dialled *dialled);

/* Copies bytes between gRPC and the network on the calling thread, unless the connections' thread is doing so. Bytes are sent sooner this way,
 * because that thread need not wake up first. The calling thread must have called rpc_connections_block_signals. */
void rpc_connections_carry(struct rpc_connections *connections);
/* Blocks SIGPIPE, which OpenSSL raises when it writes to a socket whose other end has closed. */
void rpc_connections_block_signals(void);

/* Finds the pod that opened the accepted connection with this token. Returns false if there is no such connection. */
bool rpc_connections_find(struct rpc_connections *connections, const unsigned char token[CONNECTION_TOKEN_BYTES],
                          struct pod_identity *ret_pod);

/* Returns whether all bytes that the network had delivered before this call have been passed to gRPC. */
bool rpc_connections_are_quiet(struct rpc_connections *connections);

#endif
