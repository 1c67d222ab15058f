/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker's stream to the chief: it joins, is given tickets, and says which are
 * done. While one is computed the next is already asked for. A chief that is lost
 * is dialled until it, or its successor, is there.
 *
 * One thread calls; the rest happens on the rpc's thread, whose tick must call
 * ticket_link_tick.
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
    struct generation generation; /* attempt and epoch of this process */
    unsigned worker;
    int64_t lost_ms;               /* without a chief for so long: ERROR_TIMEOUT; 0: 600 s */
    const struct crew_seat *chief; /* for its name alone; may be NULL */
    int64_t patience_ms;           /* of ticket_link_describe; 0: as waiting.h says */
    /* A ticket has come, which ticket_link_next will give unless it becomes void: on the rpc's thread, and must not call back. NULL: is
     * not told. */
    void (*foresee)(void *context, const struct ticket_grant *grant);
    void *context;
};

/* What a ticket stands for: share `ticket % per_step` of the batch of step `ticket / per_step`, counted from where the run
 * began: at step base_step, at example base_consumed of pass base_epoch over the data. */
struct ticket_grant {
    bool over; /* there are no more */
    int64_t ticket;
    int64_t clock; /* of this worker, when it begins (dispenser.h) */
    uint32_t lineage;
    int64_t per_step, base_step, base_epoch, base_consumed;
};

struct ticket_result {
    double loss;    /* sum over its targets */
    double squares; /* of the gradient; below 0: not measured */
    int64_t correct, targets, examples;
    uint32_t server_count;
    uint64_t incarnations[PS_SERVERS_MAX]; /* of the servers that hold the update */
};

int ticket_link_new(const struct ticket_link_options *options, struct ticket_link **ret_link, struct error *error);
/* After rpc_stop. */
void ticket_link_free(struct ticket_link *link);
void ticket_link_tick(struct ticket_link *link);

/* Waits for the next ticket. ERROR_STALE: superseded. ERROR_FORBIDDEN: the chief is of another version. ERROR_TIMEOUT: no chief.
 * ERROR_CANCELLED: ticket_link_cancel. */
int ticket_link_next(struct ticket_link *link, struct ticket_grant *ret_grant, struct error *error);
/* The ticket of the last grant: every server has it. NULL: it is void. */
void ticket_link_done(struct ticket_link *link, const struct ticket_result *result);

/* Whether the chief has said that the run is over: what is still computed or pushed counts no more. Any thread. */
bool ticket_link_is_over(struct ticket_link *link);

/* From any thread; for good. */
void ticket_link_cancel(struct ticket_link *link);
/* Whether the chief has been away for longer than lost_ms, and the error that says so. From any thread. */
bool ticket_link_is_lost(struct ticket_link *link);
int ticket_link_tell_lost(struct ticket_link *link, struct error *error);
/* An orderly goodbye; waits at most a second until the chief has heard it, and ended the stream. For good. */
void ticket_link_leave(struct ticket_link *link);
/* Whom ticket_link_next has been waiting for, "" for nobody. From any thread. */
void ticket_link_describe(struct ticket_link *link, char text[PS_TEXT_MAX]);

#endif
