/* SPDX-License-Identifier: Apache-2.0
 *
 * Carries large tensors between a parameter server and a worker on connections of their own ("bulk connections"),
 * beside the gRPC stream that announces the tensors. gRPC would copy the bytes and needs whole messages; a bulk
 * connection moves the bytes straight between the socket and the tensor's memory.
 *
 * The side that serves the stream (the parameter server) calls bulk_connection_expect, and sends its data port and a
 * random token on the stream. The other side dials that port and shows the token. As on every data connection, the
 * dialler proves that it has the job's key, over TLS if the job has certificates (handshake.h). A dialled connection
 * that cannot be opened is closed within seconds; gRPC then carries the bytes.
 *
 * An open connection carries one load (one array of bytes) at a time. Both sides know the load's direction and length
 * from the stream. The load's head repeats the length, and a receiver that expects another length closes the
 * connection. One thread moves the loads of all connections of a process. Calls do not wait for the network: `wake`
 * tells the owner that something has happened, and the owner then asks what.
 */
#ifndef COXSWAIN_COMM_BULK_CONNECTION_H
#define COXSWAIN_COMM_BULK_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Fewer bytes gain nothing from a connection: send them on the stream. */
#define BULK_CONNECTION_LOAD_MIN ((size_t)64 << 10)

struct bulk_connections;
struct bulk_connection;
struct link;

struct bulk_connections_options {
    const char *job_uid;
    bool listens; /* false: only dials */
    const char *listen_address;
    uint16_t port; /* 0, or in use: any free one */
    /* Called on the connections' thread when a connection has opened or closed or a load is complete. Must neither block nor call the functions
     * below. Not called for a connection that was freed. */
    void (*wake)(void *context);
    void *context;
};

/* Starts the thread that moves the bytes, and listens if `listens` is set. */
int bulk_connections_start(const struct bulk_connections_options *options, struct bulk_connections **ret_connections,
                           struct error *error);
/* Returns the port; 0 if the connections do not listen. */
uint16_t bulk_connections_port(const struct bulk_connections *connections);
/* Ends the thread and frees the set. The caller must have freed all its connections before. */
void bulk_connections_free(struct bulk_connections *connections);

/* Creates a connection that opens when a peer dials and shows the token. */
struct bulk_connection *bulk_connection_expect(struct bulk_connections *connections, uint64_t *ret_token);
/* Creates a connection that dials the peer's data port and shows the token that the peer has sent. */
struct bulk_connection *bulk_connection_dial(struct bulk_connections *connections, const char *address, uint16_t port,
                                             uint64_t token);
/* Closes and frees the connection; NULL is allowed. The caller's memory is not used afterwards. */
void bulk_connection_free(struct bulk_connection *connection);

/* A dialled connection is OPEN or CLOSED within seconds; an expected one stays OPENING until it is dialled or freed. */
enum bulk_connection_state { BULK_CONNECTION_OPENING, BULK_CONNECTION_OPEN, BULK_CONNECTION_CLOSED };
enum bulk_connection_state bulk_connection_state(struct bulk_connection *connection);
/* Returns whether a load is under way. A connection that closes during a load stays busy. */
bool bulk_connection_is_busy(struct bulk_connection *connection);
/* Returns how many bytes have moved so far; while it grows, the other side is alive. */
uint64_t bulk_connection_moved(struct bulk_connection *connection);

/* Returns whether the connection is open and no load is under way. Waits while the thread works on the connection. So the answer is already
 * true when the other side has reported over gRPC that it has the last load. */
bool bulk_connection_is_ready(struct bulk_connection *connection);

/* Start a load. The connection must be ready (bulk_connection_is_ready); if it is not, it closes and counts as busy until it is freed. The
 * memory must stay valid until the connection is not busy or is freed. */
void bulk_connection_send(struct bulk_connection *connection, const void *bytes, size_t length);
void bulk_connection_receive(struct bulk_connection *connection, void *bytes, size_t length);
/* Starts to send `length` bytes that need not be in memory yet. Whenever the socket takes bytes, the thread calls `give`, which writes the
 * bytes from `offset` on to the link with link_write and returns how many the link took. It returns BULK_CONNECTION_LATER if the next bytes
 * do not exist yet; the owner calls bulk_connection_poke once they do. */
#define BULK_CONNECTION_LATER SIZE_MAX
typedef size_t bulk_connection_give(void *context, size_t offset, struct link *link);
void bulk_connection_send_from(struct bulk_connection *connection, size_t length, bulk_connection_give *give,
                               void *context);
void bulk_connection_poke(struct bulk_connection *connection);

#endif
