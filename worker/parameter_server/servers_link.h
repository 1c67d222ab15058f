/* SPDX-License-Identifier: Apache-2.0
 *
 * All parameter servers as one peer sees them: their values in one flat array,
 * its gradients in another. Where a server proves to share memory with us, it
 * writes and reads these arrays itself; else the bytes travel on lines
 * (worker/comm/bulk_line.h) or, where they are few or no line can be had, as bulk messages.
 *
 * A link heals by itself: a server that is lost is dialled until it, or its
 * successor, is there, and is told again what it has not acknowledged. So a call
 * ends when every server has done its part, however often that takes, unless one
 * whose connection stands falls silent.
 *
 * One thread calls; the rest happens on the rpc's thread, whose tick must call
 * servers_link_tick.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_SERVERS_LINK_H
#define COXSWAIN_PARAMETER_SERVER_SERVERS_LINK_H

#include "worker/comm/rpc.h"
#include "worker/coordination/address_book.h"
#include "worker/parameter_server/message.h"
#include "worker/parameter_server/placement_rows.h"

struct servers_link;

struct servers_link_options {
    struct rpc *rpc;
    struct address_book *book;
    unsigned first_seat; /* of the servers in the book */
    const struct crew_seat *servers;
    const struct placement *placement;
    int64_t elements; /* of the layout */
    const char *job_uid;
    struct generation generation; /* attempt and epoch of this process */
    unsigned index;               /* of the worker; PS_CHIEF_INDEX */
    uint32_t digest;
    bool share_memory; /* try it */
    bool pulls_only;   /* no gradients */
    /* A pull fails (ERROR_UNAVAILABLE) rather than waits when a server is lost. */
    bool impatient;
    /* Asked while such a pull waits: whether a server that it waits for will not answer soon, being without a state. */
    bool (*gives_up)(void *context);
    /* Hears once, on the rpc's thread, of a server to which large tensors go through gRPC, since it cannot be had on a line. NULL:
     * nobody. */
    void (*warn)(void *context, const char *text);
    void *context;
    /* How long a server may say nothing at all while its connection stands and something is asked of it: then the call fails
     * (ERROR_TIMEOUT, with its name). 0: 300 s, as for collectives. One that is away is waited for without end. */
    int64_t deadline_ms;
    int64_t patience_ms; /* of servers_link_describe; 0: as waiting.h says */
};

int servers_link_new(const struct servers_link_options *options, struct servers_link **ret_link, struct error *error);
/* After rpc_stop: callbacks come until then. */
void servers_link_free(struct servers_link *link);
void servers_link_tick(struct servers_link *link);

/* Flat, in the layout's order, aligned to 64 bytes. */
float *servers_link_values(struct servers_link *link);
float *servers_link_gradients(struct servers_link *link);

/* The caller works in that lineage: a server whose word is of one before it does not know of it, for it was superseded while it stood
 * still, and is asked no more; its successor is waited for. Lineages only grow. A push says its own. */
void servers_link_follow(struct servers_link *link, uint32_t lineage);

/* Errors of both: ERROR_CANCELLED (servers_link_cancel), ERROR_STALE (a server has refused us), ERROR_FORBIDDEN (a server is
 * of another version), ERROR_UNAVAILABLE, ERROR_TIMEOUT. */
/* `rows`: by server, which rows of its tables; the others' values stay as they were. NULL: all. Here and in a push they must
 * outlive the link. */
int servers_link_pull(struct servers_link *link, const struct row_set *rows, struct error *error);

struct servers_push {
    int64_t ticket;
    int64_t clock; /* of its grant */
    uint32_t lineage;
    double rate, scale;         /* 0: the share has no examples */
    bool pull;                  /* the values after it as well, of all rows */
    const struct row_set *rows; /* by server: whose gradients are not 0; NULL: all */
};
/* *ret_outdated: a server has left the lineage, or the update came too late for the bound; the ticket is void. `incarnations`: of the servers that acknowledged. */
int servers_link_push(struct servers_link *link, const struct servers_push *push, bool *ret_outdated,
                      uint64_t incarnations[PS_SERVERS_MAX], struct error *error);

/* Whether the last push has brought all values, of that lineage: they need not be pulled then. */
bool servers_link_is_fresh(struct servers_link *link, uint32_t lineage);

/* From any thread; for good. */
void servers_link_cancel(struct servers_link *link);
/* Whom a call has been waiting for, and for what; "" for nobody. From any thread. */
void servers_link_describe(struct servers_link *link, char text[PS_TEXT_MAX]);
/* Bytes of tensors that went through shared memory, on lines and through gRPC. */
struct servers_traffic {
    int64_t shared, lined, streamed;
};
struct servers_traffic servers_link_traffic(struct servers_link *link);

#endif
