/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects a worker to all parameter servers: their parameters are pulled into one flat array, and gradients are pushed
 * from another. The chief has a link too, which only pulls. A server that proves to share memory with this process
 * accesses these arrays itself. Otherwise the bytes are sent on bulk connections (worker/comm/bulk_connection.h), or as
 * bulk messages over gRPC if they are few or no bulk connection is available.
 *
 * If a server is lost, the link reconnects until that server or its successor answers, and sends again the updates that
 * were not acknowledged. So a call returns only when every server has answered, however many attempts that takes. It fails
 * if a connected server stays silent for `deadline_ms`, or with one of the other errors listed at servers_link_pull.
 *
 * One thread calls; everything else happens on the rpc's thread, whose tick must call servers_link_tick.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_SERVERS_LINK_H
#define COXSWAIN_PARAMETER_SERVER_SERVERS_LINK_H

#include "worker/comm/rpc.h"
#include "worker/coordination/address_book.h"
#include "worker/parameter_server/message.h"
#include "worker/parameter_server/placement_rows.h"

struct servers_link;

/* job_uid is copied; what the other pointers lead to must live until servers_link_free. */
struct servers_link_options {
    struct rpc *rpc;
    struct address_book *book;
    unsigned first_seat; /* of the first server in the book */
    const struct crew_seat *servers;
    const struct placement *placement;
    int64_t elements; /* of the layout */
    const char *job_uid;
    struct generation generation; /* attempt and incarnation of this process */
    unsigned index;               /* the worker's, or PS_CHIEF_INDEX */
    uint32_t digest;
    bool share_memory; /* try to share memory */
    bool pulls_only;   /* no gradients are pushed */
    /* If a server is lost, a pull fails (ERROR_UNAVAILABLE) instead of waiting. */
    bool fail_if_lost;
    /* With fail_if_lost, called while a pull waits: if it returns true, the pull fails, as the server
     * cannot answer before the chief starts it. */
    bool (*server_has_no_state)(void *context);
    /* Called once, on the rpc's thread, for a server to which large tensors are sent over gRPC
     * because no bulk connection is available. NULL: not called. */
    void (*warn)(void *context, const char *text);
    void *context;
    /* How long a connected server that was asked for something may be silent before the call fails
     * (ERROR_TIMEOUT, with its name). 0: 300 s, as for collectives. A server that is not connected
     * is waited for without limit. */
    int64_t deadline_ms;
    int64_t patience_ms; /* for servers_link_describe; 0: the default of waiting.h */
};

int servers_link_new(const struct servers_link_options *options, struct servers_link **ret_link, struct error *error);
/* Frees the link. Call it after rpc_stop, since callbacks run until then. */
void servers_link_free(struct servers_link *link);
void servers_link_tick(struct servers_link *link);

/* Return the flat arrays, in the layout's order, aligned to 64 bytes. With pulls_only there is no
 * array of gradients (NULL). */
float *servers_link_values(struct servers_link *link);
float *servers_link_gradients(struct servers_link *link);

/* Sets the caller's lineage (variables.h), which only grows; a push also sets it. A server whose
 * answer has an older lineage was superseded while it was suspended: the link stops using it and
 * waits for its successor. */
void servers_link_follow(struct servers_link *link, uint32_t lineage);

/* Errors of pull and push: ERROR_CANCELLED (servers_link_cancel), ERROR_STALE (a server has refused
 * this process), ERROR_FORBIDDEN (a server is of another version), ERROR_UNAVAILABLE,
 * ERROR_TIMEOUT. */
/* Pulls values. `rows` lists by server which rows of its tables to pull; the values of other rows
 * stay as they were. NULL: all. `rows` must outlive the link, here and in a push. */
int servers_link_pull(struct servers_link *link, const struct row_set *rows, struct error *error);

struct servers_push {
    int64_t ticket;
    int64_t clock; /* of the ticket's grant */
    uint32_t lineage;
    double rate, scale;         /* 0: the share has no examples */
    bool pull;                  /* pull the values after the update too, of all rows */
    const struct row_set *rows; /* by server: rows with gradients that are not 0; NULL: all */
};
/* Pushes an update and waits until every server has acknowledged it. *ret_outdated: the crew
 * has rolled back since, or the update was too late for the staleness bound; the ticket is void.
 * `nonces`: of the server processes that acknowledged. */
int servers_link_push(struct servers_link *link, const struct servers_push *push, bool *ret_outdated,
                      uint64_t nonces[PS_SERVERS_MAX], struct error *error);

/* Returns whether the last push has brought all values, in that lineage, so that they need not be
 * pulled. */
bool servers_link_is_fresh(struct servers_link *link, uint32_t lineage);

/* Makes all calls fail with ERROR_CANCELLED, now and forever. May be called from any thread. */
void servers_link_cancel(struct servers_link *link);
/* Describes which server a call waits for, and for what; "" if for none. May be called from any
 * thread. */
void servers_link_describe(struct servers_link *link, char text[PS_TEXT_MAX]);
/* Bytes of tensors that were sent or received through shared memory, on bulk connections and over gRPC. */
struct servers_traffic {
    int64_t shared, on_connection, streamed;
};
struct servers_traffic servers_link_traffic(struct servers_link *link);

#endif
