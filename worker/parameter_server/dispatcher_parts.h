/* SPDX-License-Identifier: Apache-2.0
 *
 * A dispatcher's inside, for the files that make it: dispatcher.c (life cycle),
 * dispatcher_servers.c (control of the servers), dispatcher_workers.c (tickets),
 * dispatcher_caller.c (the calls of the other thread). Only they include it.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_DISPATCHER_PARTS_H
#define COXSWAIN_PARAMETER_SERVER_DISPATCHER_PARTS_H

#include <pthread.h>

#include "common/clock.h"
#include "worker/comm/rpc.h"
#include "worker/coordination/address_book.h"
#include "worker/coordination/stragglers.h"
#include "worker/parameter_server/bulk.h"
#include "worker/parameter_server/dispatcher.h"
#include "worker/parameter_server/lookout.h"
#include "worker/parameter_server/waiting.h"

#define EVENTS_MAX 256

/* A server as the chief sees it. */
struct led_server {
    struct dispatcher *dispatcher;
    unsigned number;
    struct rpc_stream *stream;
    struct lookout lookout; /* for a successor of it */
    int64_t next_dial_ms;
    bool stands; /* STANDING has come on this stream */
    struct server_standing standing;
    struct ticket_set settled; /* what its state held when it was last started, and what it is told not to wait for */
    struct ticket_set lost;    /* of these, what was counted as lost … */
    struct ticket_set hollow;  /* … and what would have been, had its share any examples */
    int64_t asked_ms;          /* when it was last told to start, save, reduce or apply, or was lost */
    int64_t heard_ms;          /* when it last said anything … */
    int64_t prompted_ms;       /* … and was last asked to, while a save waits for it */
    int64_t updates_lost;      /* settled there, by this chief or one before it, and in none of its values */
    bool starting;
    bool reduced, stepped;
    bool parting;         /* it has asked to leave, and waits */
    bool parting_by_save; /* it did before the last save was ordered: what it acknowledged is there */
    double squares;
    bool saving, saved;
    bool busy;              /* it writes a save that nobody waits for any more, and refuses others until that is done */
    int64_t save_number;    /* of the order under way */
    struct ps_message save; /* its answer */
};

struct ticket_desk {
    struct ticket_desk *next;
    struct dispatcher *dispatcher;
    struct rpc_stream *stream;
    bool joined;
    unsigned worker, wants;
    int64_t clock; /* that it has brought along, of this lineage; -1: none */
    uint32_t clock_lineage;
    int64_t computing; /* the ticket that it has brought along; -1: none */
    int64_t heard_ms, beat_ms;
};

/* Sums over what was finished since the last step was told. */
struct step_sums {
    double loss, squares;
    int64_t correct, targets, examples;
};

enum dispatcher_phase {
    PHASE_CLOSED,   /* no tickets: servers are missing or being started */
    PHASE_OPEN,     /* tickets flow */
    PHASE_REDUCING, /* Synchronous: all shares are there, servers sum them … */
    PHASE_APPLYING, /* … and apply the sum */
    PHASE_OVER,     /* no more tickets; the chief saves and exports, and may have to go back yet */
};

struct dispatcher {
    struct dispatcher_options options;
    char *job_uid;
    struct rpc *rpc;
    struct rpc_server *door;
    struct address_book *book;

    pthread_mutex_t lock; /* of all that follows; callbacks hold it */
    pthread_cond_t changed;
    struct led_server servers[PS_SERVERS_MAX];
    struct ticket_desk *desks;
    uint32_t worker_epochs[PS_WORKERS_MAX];
    int64_t
        away_ms[PS_WORKERS_MAX]; /* BoundedStaleness: since when a worker's connection has been lost; 0: it has not */
    unsigned overtaken[PS_WORKERS_MAX]; /* BoundedStaleness: how often each was left behind */
    int64_t started_ms;
    bool assembles; /* BoundedStaleness: a successor waits for the clocks that the workers bring along */
    struct dispenser *dispenser;
    uint32_t dispenser_lineage; /* in which its tickets are finished and held */
    enum dispatcher_phase phase;
    struct dispatcher_plan terms; /* lineage and base; no sets */
    struct step_sums sums;
    int64_t told_step;
    int64_t done_ms; /* when a ticket was done last, or tickets began to flow */
    int64_t late;    /* Synchronous: shares that came after another worker's answer to the same, and were dropped */
    struct stragglers *stragglers; /* Synchronous */
    struct error fatal;
    bool cancelled, finished; /* finished: everybody was told that the run is over */
    int64_t cancelled_ms;
    bool awaits_disks;         /* a save begins once no server is busy with another */
    bool saves_no_more;        /* a save took too long after that */
    int64_t written, grown_ms; /* bytes of a save's shards when they were last looked at, and when there were others */
    void (*errand)(struct dispatcher *dispatcher, void *context); /* of the other thread, for the rpc's; NULL: none */
    void *errand_context;
    struct dispatcher_event events[EVENTS_MAX];
    unsigned first_event, event_count;
};

static inline int64_t dispatcher_now_ms(void)
{
    return clock_monotonic_ns() / 1000000;
}

/* All with the lock held. */
void dispatcher_fail(struct dispatcher *dispatcher, enum error_kind kind, const char *text);
void dispatcher_tell(struct dispatcher *dispatcher, const struct dispatcher_event *event);
void dispatcher_say(struct dispatcher *dispatcher, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "ps 1 (10.0.0.7:2222)"; "worker 2 (…)". */
void dispatcher_name_server(const struct dispatcher *dispatcher, unsigned number, char name[WAITING_NAME_MAX]);
void dispatcher_name_worker(const struct dispatcher *dispatcher, unsigned worker, char name[WAITING_NAME_MAX]);

static inline bool dispatcher_awaits_disk(const struct led_server *server)
{
    return server->saving || (server->busy && server->dispatcher->awaits_disks);
}

static inline void dispatcher_witness(const struct dispatcher *dispatcher, enum ticket_fate fate, unsigned worker,
                                      int64_t ticket)
{
    if (dispatcher->options.witness != NULL)
        dispatcher->options.witness(dispatcher->options.context, fate, worker, ticket);
}

/* Before any tick. */
void dispatcher_servers_init(struct dispatcher *dispatcher);
void dispatcher_servers_tick(struct dispatcher *dispatcher);
void dispatcher_order(struct dispatcher *dispatcher, const struct ps_message *order); /* to all */
bool dispatcher_all_stand(const struct dispatcher *dispatcher);
/* Its state will never have these; `are_empty`: nor would it, for they have no updates. */
void dispatcher_write_off(struct led_server *server, const struct ticket_set *tickets, bool are_empty);
/* All shares of the step are there. */
void dispatcher_reduce(struct dispatcher *dispatcher);
/* After a server came back in the middle of it. */
void dispatcher_resume_step(struct dispatcher *dispatcher);

void dispatcher_desk_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                            void **ret_context);
void dispatcher_desks_tick(struct dispatcher *dispatcher);
/* Gives out what may be given out. */
void dispatcher_deal(struct dispatcher *dispatcher);
/* Welcomes everybody to (new) terms. */
void dispatcher_restart_desks(struct dispatcher *dispatcher);
/* The run is over: no desk need come back. */
void dispatcher_dismiss_desks(struct dispatcher *dispatcher);
void dispatcher_step_done(struct dispatcher *dispatcher, int64_t step, double norm);

#endif
