/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects a worker to the chief of a parameter-server crew: it joins, receives tickets (each the number of a share of
 * a batch, whose gradient this worker then computes), and reports which are done. While one ticket is computed, the
 * next is requested. If the chief is lost, the link reconnects until the chief or its successor answers; after
 * `lost_ms` it fails with ERROR_TIMEOUT.
 *
 * One thread calls; everything else happens on the rpc's thread, whose tick must call ticket_link_tick.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_TICKET_LINK_H
#define COXSWAIN_PARAMETER_SERVER_TICKET_LINK_H

#include "worker/comm/rpc.h"
#include "worker/coordination/address_book.h"
#include "worker/parameter_server/message.h"

struct ticket_link;
struct ticket_grant;

struct ticket_link_options {
    struct rpc *rpc;
    struct address_book *book; /* the chief is seat 0 */
    uint16_t chief_port;
    const char *job_uid;
    struct generation generation; /* attempt and incarnation of this process */
    unsigned worker;
    int64_t lost_ms;               /* time without a chief before ERROR_TIMEOUT; 0: 600 s */
    const struct crew_seat *chief; /* for its name only; may be NULL */
    int64_t patience_ms;           /* for ticket_link_describe; 0: the default of waiting.h */
    /* Called on the rpc's thread when a ticket has arrived, before ticket_link_next returns it, so that
     * its examples can be read ahead. A rollback may still make the ticket void. Must not call the link.
     * NULL: not called. */
    void (*foresee)(void *context, const struct ticket_grant *grant);
    void *context;
};

/* A ticket and what it stands for: share `ticket % per_step` of the batch of step `ticket /
 * per_step`. Batches are counted from where the run began: at step base_step, at example
 * base_consumed of pass base_epoch over the data. */
struct ticket_grant {
    bool over; /* there are no more tickets */
    int64_t ticket;
    int64_t clock; /* this worker's, when it begins the ticket (ticket_scheduler.h) */
    uint32_t lineage;
    int64_t per_step, base_step, base_epoch, base_consumed;
};

struct ticket_result {
    double loss;    /* sum over its targets */
    double squares; /* of the gradient; negative: not measured */
    int64_t correct, targets, examples;
    uint32_t server_count;
    uint64_t nonces[PS_SERVERS_MAX]; /* of the servers that hold the update */
};

/* Creates the link, which connects at the first tick. job_uid is copied; what the other pointers lead to must outlive the link. */
int ticket_link_new(const struct ticket_link_options *options, struct ticket_link **ret_link, struct error *error);
/* Frees the link. Call it after rpc_stop. */
void ticket_link_free(struct ticket_link *link);
/* Connects again if that is due, and sends heartbeats. */
void ticket_link_tick(struct ticket_link *link);

/* Waits for the next ticket. ERROR_STALE: this worker is superseded. ERROR_FORBIDDEN: the chief is
 * of another version. ERROR_TIMEOUT: no chief. ERROR_CANCELLED: ticket_link_cancel. */
int ticket_link_next(struct ticket_link *link, struct ticket_grant *ret_grant, struct error *error);
/* Ends the ticket of the last grant. `result`: it is done, and every server has its update; reported to the chief. NULL: it is void,
 * and the chief may give it to another worker. */
void ticket_link_done(struct ticket_link *link, const struct ticket_result *result);

/* Returns whether the chief has announced the end of the run; updates that are still computed or pushed then
 * no longer count. May be called from any thread. */
bool ticket_link_is_over(struct ticket_link *link);

/* Makes ticket_link_next fail with ERROR_CANCELLED, now and forever. May be called from any thread. */
void ticket_link_cancel(struct ticket_link *link);
/* ticket_link_is_lost returns whether there has been no chief for longer than lost_ms;
 * ticket_link_tell_lost sets the error that says so, and returns -1. May be called from any thread. */
bool ticket_link_is_lost(struct ticket_link *link);
int ticket_link_tell_lost(struct ticket_link *link, struct error *error);
/* Leaves the crew for good. Waits at most a second until the chief has received that and ended the
 * stream. */
void ticket_link_leave(struct ticket_link *link);
/* Describes what ticket_link_next waits for; "" if it does not wait. May be called from any thread. */
void ticket_link_describe(struct ticket_link *link, char text[PS_TEXT_MAX]);

#endif
