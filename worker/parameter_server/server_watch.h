/* SPDX-License-Identifier: Apache-2.0
 *
 * Detects that a parameter server has been replaced although the connection to the old process still works. A process
 * that was suspended for long may resume with its connections alive after the operator has replaced its pod; peers that
 * stay with it would train apart from the rest of the crew. The chief's dispatcher has one watch per server.
 *
 * The server's name is looked up periodically. If it leads to another address, the process there is asked, on a stream
 * of its own, which generation it has. Only a higher generation counts, since a name may also lead to an earlier
 * process. If the generation is higher, the process at the connection's end is told, on another stream, that it is
 * superseded, and `found` tells the owner of the connection to leave it.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_SERVER_WATCH_H
#define COXSWAIN_PARAMETER_SERVER_SERVER_WATCH_H

#include "worker/comm/generation.h"
#include "worker/comm/rpc.h"
#include "worker/coordination/address_book.h"
#include "worker/parameter_server/message.h"

/* Copied by server_watch_init; what the pointers lead to must outlive the watch. */
struct server_watch_options {
    struct rpc *rpc;
    struct address_book *book;
    unsigned number; /* of the server in the book */
    const struct crew_seat *seat;
    const char *job_uid;
    int64_t every_ms; /* 0: 5000 */
    /* Called when a newer process was found; on the rpc's thread, at most once per server_watch_begin. */
    void (*found)(void *context);
    void *context;
};

/* Embedded in the owner of the connection. Used on the rpc's thread only. */
struct server_watch {
    struct server_watch_options options;
    char address[RESOLVE_ADDRESS_MAX]; /* where the connection leads */
    bool is_met, is_told;
    struct generation met; /* highest generation met on any connection */
    int64_t next_ms;
    struct rpc_stream *probe; /* to the process at the other address */
};

void server_watch_init(struct server_watch *watch, const struct server_watch_options *options);
/* Starts to watch a new connection to `address`. */
void server_watch_begin(struct server_watch *watch, const char *address);
/* Records the generation that the connected process has reported. */
void server_watch_meet(struct server_watch *watch, struct generation generation);
/* Looks the name up if that is due. Call it periodically while the connection stands. */
void server_watch_tick(struct server_watch *watch);

#endif
