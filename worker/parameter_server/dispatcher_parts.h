/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the internals of the dispatcher (dispatcher.h), for the files that together lead the servers and hand out
 * tickets: dispatcher.c (life cycle), dispatcher_servers.c (control of the servers), dispatcher_workers.c (tickets),
 * dispatcher_caller.c (the functions that the chief calls from its own thread), dispatcher_waiting.c (the texts that
 * say what is waited for). Only they include this header.
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
#include "worker/parameter_server/server_watch.h"
#include "worker/parameter_server/waiting.h"

#define EVENTS_MAX 256

/* A server as the chief sees it. */
struct led_server {
    struct dispatcher *dispatcher;
    unsigned number;
    struct rpc_stream *stream;
    struct server_watch watch; /* notices if the server's pod is replaced */
    int64_t next_dial_ms;
    bool stands; /* the server has reported its state on this stream */
    struct server_standing standing;
    struct ticket_set settled; /* tickets that need not be pushed: in its state at its last start, or discarded since */
    struct ticket_set lost;    /* those of `settled` that are counted as lost updates */
    struct ticket_set hollow;  /* those of `settled` whose shares have no examples, so that nothing is lost */
    int64_t asked_ms;          /* when the server was last ordered to start, save, reduce or apply, or was lost */
    int64_t heard_ms;          /* when the server's last message came */
    int64_t prompted_ms; /* when the server was last sent a message that it must answer, while a save waits for it */
    int64_t
        updates_lost; /* tickets that count as finished, for this chief or an earlier one, but are not in the values */
    bool starting;
    bool reduced, stepped;
    bool leaving;             /* the server has asked to leave, and waits for the answer */
    bool leaving_before_save; /* it asked before the last save was ordered, so the save has all that it acknowledged */
    double squares;
    bool saving, saved;
    bool busy; /* the server still writes an earlier, abandoned save, and refuses others until it has finished */
    int64_t save_number;    /* of the order to save that is in progress */
    struct ps_message save; /* the server's answer to that order */
};

struct worker_session {
    struct worker_session *next;
    struct dispatcher *dispatcher;
    struct rpc_stream *stream;
    bool joined;
    unsigned worker, wants;
    int64_t clock;          /* the clock that the worker had when it joined; -1: none */
    uint32_t clock_lineage; /* the lineage in which `clock` counts */
    int64_t computing;      /* the ticket that the worker was computing when it joined; -1: none */
    int64_t heard_ms, beat_ms;
    int64_t done_ns; /* when it last finished a ticket; 0: never */
};

/* Sums over the tickets finished since the last step was reported. */
struct step_sums {
    double loss, squares;
    int64_t correct, targets, examples;
};

enum dispatcher_phase {
    PHASE_CLOSED,   /* no tickets are handed out: servers are missing or being started */
    PHASE_OPEN,     /* tickets are handed out */
    PHASE_REDUCING, /* Synchronous: all shares have arrived, servers sum them */
    PHASE_APPLYING, /* Synchronous: servers apply the sum */
    PHASE_OVER,     /* no more tickets; the chief saves and exports, and may still have to roll back */
};

struct dispatcher {
    struct dispatcher_options options;
    char *job_uid;
    struct rpc *rpc;
    struct rpc_server *listener;
    struct address_book *book;

    pthread_mutex_t lock; /* guards everything below; held during callbacks */
    pthread_cond_t changed;
    struct led_server servers[PS_SERVERS_MAX];
    struct worker_session *sessions;
    uint32_t worker_incarnations[PS_WORKERS_MAX];
    int64_t away_ms[PS_WORKERS_MAX];    /* BoundedStaleness: when a worker's connection was lost; 0: it was not */
    unsigned overtaken[PS_WORKERS_MAX]; /* BoundedStaleness: how often each was overtaken */
    int64_t started_ms;
    bool assembles; /* BoundedStaleness: this new chief waits until the workers have joined and reported their clocks */
    struct ticket_scheduler *scheduler;
    uint32_t scheduler_lineage; /* the lineage in which its tickets are finished and held */
    enum dispatcher_phase phase;
    struct dispatcher_plan terms; /* lineage and base of the plan in progress; its sets are not used */
    struct step_sums sums;
    int64_t reported_step; /* the last step that was reported with EVENT_STEP */
    int64_t done_ms;       /* when a ticket was last done, or tickets were first handed out */
    int64_t late;          /* Synchronous: shares dropped because another worker had finished the same share */
    struct stragglers *stragglers;
    struct error fatal;
    bool cancelled, finished; /* finished: all members were informed that the run is over */
    int64_t cancelled_ms;
    bool awaits_disks;         /* a save waits until no server is busy with another */
    bool saves_no_more;        /* a save took too long after dispatcher_cancel; the next one does not wait */
    int64_t written, grown_ms; /* of a save's shards (options.written), and when it last changed */
    void (*task)(struct dispatcher *dispatcher, void *context); /* to run on the rpc's thread; NULL: none */
    void *task_context;
    struct dispatcher_event events[EVENTS_MAX];
    unsigned first_event, event_count;
};

static inline int64_t dispatcher_now_ms(void)
{
    return clock_monotonic_ns() / 1000000;
}

/* All functions below are called with the lock held. */
/* Makes the calls of the chief's thread fail from now on; only the first failure counts. */
void dispatcher_fail(struct dispatcher *dispatcher, enum error_kind kind, const char *text);
/* Queue an event for dispatcher_next_event; dispatcher_say one of kind EVENT_TEXT. If the queue is full, an event that matters less is dropped. */
void dispatcher_tell(struct dispatcher *dispatcher, const struct dispatcher_event *event);
void dispatcher_say(struct dispatcher *dispatcher, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Format names: "ps 1 (10.0.0.7:2222)", "worker 2 (…)". */
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

/* Initializes the servers. Call it before any tick. */
void dispatcher_servers_init(struct dispatcher *dispatcher);
void dispatcher_servers_tick(struct dispatcher *dispatcher);
void dispatcher_order(struct dispatcher *dispatcher, const struct ps_message *order); /* to all servers */
bool dispatcher_all_stand(const struct dispatcher *dispatcher);
/* Tells a server that its state will never have these tickets' updates; `are_empty`: there are
 * none, because their shares have no examples. */
void dispatcher_discard_tickets(struct led_server *server, const struct ticket_set *tickets, bool are_empty);
/* Synchronous: orders the servers to sum the step's shares, all of which have arrived. */
void dispatcher_reduce(struct dispatcher *dispatcher);
/* Repeats the present step's order after a server came back in the middle of it. */
void dispatcher_resume_step(struct dispatcher *dispatcher);

void dispatcher_session_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                               void **ret_context);
void dispatcher_sessions_tick(struct dispatcher *dispatcher);
/* Hands out all tickets that may be handed out now. */
void dispatcher_deal(struct dispatcher *dispatcher);
/* Tells all workers the lineage and base of the present plan, after a start or rollback. */
void dispatcher_restart_sessions(struct dispatcher *dispatcher);
/* Informs all workers that the run is over, so that none reconnects. */
void dispatcher_dismiss_sessions(struct dispatcher *dispatcher);
void dispatcher_step_done(struct dispatcher *dispatcher, int64_t step, double norm);

#endif
