/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the name of a server has come to mean another process than the one that
 * a connection leads to. A process that stood still for long may have been
 * replaced, and come back with its connections alive: whoever stays with it trains
 * apart from all who came later.
 *
 * Looks the name up every so often. Where it leads elsewhere, whoever is there is
 * asked which process it is, by a stream of its own; only one of a higher
 * generation counts, for a name may also lead to one that was there before. Then
 * the one that the connection leads to is told, by another stream, that it is
 * superseded, and the connection's owner leaves it.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_LOOKOUT_H
#define COXSWAIN_PARAMETER_SERVER_LOOKOUT_H

#include "worker/comm/generation.h"
#include "worker/comm/rpc.h"
#include "worker/coordination/address_book.h"
#include "worker/parameter_server/message.h"

struct lookout_options {
    struct rpc *rpc;
    struct address_book *book;
    unsigned number; /* of the server in the book */
    const struct crew_seat *seat;
    const char *job_uid;
    int64_t every_ms; /* 0: 5000 */
    /* There is a newer one. On the rpc's thread; at most once for each lookout_begin. */
    void (*found)(void *context);
    void *context;
};

/* Embedded in what owns the connection. All on the rpc's thread. */
struct lookout {
    struct lookout_options options;
    char address[RESOLVE_ADDRESS_MAX]; /* where the connection leads */
    bool is_met, is_told;
    struct generation met; /* who is there; of all connections the highest */
    int64_t next_ms;
    struct rpc_stream *probe; /* of whoever is elsewhere */
};

void lookout_init(struct lookout *lookout, const struct lookout_options *options);
/* A connection to `address` begins. */
void lookout_begin(struct lookout *lookout, const char *address);
/* Who is there has said which process it is. */
void lookout_meet(struct lookout *lookout, struct generation generation);
/* While the connection stands. */
void lookout_tick(struct lookout *lookout);

#endif
