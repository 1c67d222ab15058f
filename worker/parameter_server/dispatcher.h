/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the network side of the chief of a parameter-server crew: it leads the servers, over a control stream to each,
 * and hands out tickets to the workers that connect to it. A ticket is the number of one share of a batch: a worker
 * computes the share's gradient and pushes it to the servers. The ticket scheduler decides which ticket goes to which
 * worker.
 *
 * The chief (train/ps_chief.h) waits for events, decides what the servers start from, and orders saves:
 *
 *     dispatcher_start
 *     again: dispatcher_await_servers     all servers are connected and report what they hold
 *            dispatcher_begin             sends them what to start from; tickets are handed out
 *            dispatcher_next_event …      until SERVER_LOST: goto again
 *     dispatcher_finish, dispatcher_free
 *
 * All work is done on the rpc's thread. Except where a comment says otherwise, one other thread calls the functions.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_DISPATCHER_H
#define COXSWAIN_PARAMETER_SERVER_DISPATCHER_H

#include "worker/coordination/member.h"
#include "worker/coordination/stragglers.h"
#include "worker/parameter_server/message.h"
#include "worker/parameter_server/ticket_scheduler.h"

struct dispatcher;
struct dispatcher_plan;

/* What happens to workers and tickets. */
#define TICKET_FATES(X)                                                                                                \
    X(JOIN, "join")   /* a worker has joined (again), and holds no ticket; `ticket`: its clock (ticket_scheduler.h) */ \
    X(LEAVE, "leave") /* a worker has left; tickets that it held may be given to others */                             \
    X(TAKE, "take")   /* a worker was given a ticket */                                                                \
    X(DONE, "done")   /* a worker has finished a ticket that it held, and the ticket counts */                         \
    X(AGAIN, "again") /* a worker has finished a ticket that another worker had finished before */                     \
    X(LATE, "late")   /* as DONE, but the worker no longer held the ticket, because it was considered lost */          \
    X(HOLD, "hold")   /* after JOIN: the worker still holds this ticket from before */                                 \
    X(CLOCK, "clock") /* a worker has finished more tickets than the chief knew; `ticket`: its clock */                \
    X(VOID, "void")   /* no ticket is held any more; all below `ticket` are finished */                                \
    X(BACK, "back")   /* before VOID: the crew rolls back, and all clocks begin anew */                                \
    X(KEPT, "kept")   /* after VOID: this ticket is finished too */
enum ticket_fate {
#define X(name, text) TICKET_##name,
    TICKET_FATES(X)
#undef X
};

struct dispatcher_options {
    const char *job_uid;
    struct generation generation; /* attempt and incarnation of the chief */
    const char *listen_address;
    uint16_t port; /* 0: any free one */
    const struct crew_seat *servers;
    unsigned server_count;
    const struct crew_seat *workers; /* for their names; may include the chief; NULL: not known */
    unsigned worker_count;
    uint32_t digest;
    struct ticket_scheduler_options scheduler;
    double gradient_clip_norm;                   /* Synchronous; 0: none */
    double (*rate)(void *context, int64_t step); /* the learning rate of `step`, from 1; any thread */
    /* Asynchronous: returns whether a ticket's share has no examples under this plan, so that no
     * update can be lost with it. NULL: no share is empty. Any thread. */
    bool (*is_empty)(void *context, const struct dispatcher_plan *plan, int64_t ticket);
    /* Called for each TICKET_FATES event, in order. Must return quickly, since everything waits for
     * it. NULL: not called. Any thread. */
    void (*witness)(void *context, enum ticket_fate fate, unsigned worker, int64_t ticket);
    void *context;
    int64_t look_ms;      /* how often to check whether a server was replaced; 0: the default of server_watch.h */
    int64_t death_ms;     /* silence after which a worker is lost; 0: 5000 */
    int64_t patience_ms;  /* for dispatcher_describe; 0: the default of waiting.h */
    int64_t save_ms;      /* a save fails after so long without progress of any disk; 0: 120000 */
    int64_t last_save_ms; /* replaces save_ms after dispatcher_cancel; 0: 15000, as long as a leaving server waits */
    /* Returns a number that changes whenever a disk has made progress with a save's shards. NULL:
     * progress is not known and does not extend the time. */
    int64_t (*written)(void *context, const char *directory);
};

/* Starts to listen, and starts the thread. `servers`, `workers` and `context` must outlive the dispatcher; other options are copied. */
int dispatcher_start(const struct dispatcher_options *options, struct dispatcher **ret_dispatcher, struct error *error);
void dispatcher_free(struct dispatcher *dispatcher);
uint16_t dispatcher_port(const struct dispatcher *dispatcher);
/* Makes dispatcher_await_servers, dispatcher_begin and dispatcher_next_event fail with ERROR_CANCELLED from now
 * on. dispatcher_save may still be called. May be called from any thread. */
void dispatcher_cancel(struct dispatcher *dispatcher);

/* The state that a server has reported. */
struct server_standing {
    uint64_t nonce; /* random number of the server's process */
    bool holds_state;
    uint32_t lineage;
    int64_t clock, updates, empty;                /* as in variables.h */
    int64_t base_step, base_epoch, base_consumed; /* from the plan that it was started with */
    struct ticket_set tickets;                    /* released by the caller */
};
/* Waits until all servers are connected and have reported their state. ERROR_STALE: a server knows
 * a newer chief. ERROR_FORBIDDEN: a server is of another version. The caller releases the
 * standings. */
int dispatcher_await_servers(struct dispatcher *dispatcher, struct server_standing standings[PS_SERVERS_MAX],
                             struct error *error);
void server_standing_release(struct server_standing *standing);

/* What one server starts from. */
struct server_start {
    bool needed;               /* false: the server continues with the values that it holds; the rest is not used */
    const char *path;          /* the checkpoint that the server loads; "": the initial values */
    struct ticket_set tickets; /* those whose updates are in the checkpoint */
    int64_t updates, empty;    /* as in variables.h */
};
/* What the crew starts from. */
struct dispatcher_plan {
    uint32_t
        lineage; /* a number that rises with each rollback to a checkpoint; updates of another lineage are refused */
    int64_t base_step, base_epoch, base_consumed; /* where ticket base_step * per_step begins */
    int64_t step;                                 /* Synchronous: steps applied */
    int64_t end;                                  /* of the run, in tickets; 0: unchanged */
    bool keeps_tickets; /* finished and held tickets remain so: only some servers are restored, or none */
    struct ticket_set finished;
    const struct server_start *starts; /* by server */
};
/* Tells every server what it starts from, waits until all have loaded it, then hands out tickets.
 * *ret_lost is the number of updates that a server had acknowledged and that are lost now.
 * ERROR_UNAVAILABLE: a server was lost meanwhile. */
int dispatcher_begin(struct dispatcher *dispatcher, const struct dispatcher_plan *plan, int64_t *ret_lost,
                     struct error *error);

enum dispatcher_event_kind { EVENT_NONE, EVENT_STEP, EVENT_SERVER_LOST, EVENT_SERVER_LEAVING, EVENT_TEXT, EVENT_OVER };
struct dispatcher_event {
    enum dispatcher_event_kind kind;
    int64_t step; /* steps finished; asynchronous: tickets / per_step */
    double loss, gradient_norm;
    int64_t correct, targets, examples;
    int64_t at_ns;              /* CLOCK_MONOTONIC */
    bool has_straggler;         /* EVENT_STEP: a worker is a straggler: `straggler` */
    struct straggler straggler; /* if has_straggler */
    char text[PS_TEXT_MAX];
};
/* Waits for an event; EVENT_NONE after `timeout_ms`. Fails with ERROR_STALE or ERROR_CANCELLED,
 * among others. */
int dispatcher_next_event(struct dispatcher *dispatcher, int64_t timeout_ms, struct dispatcher_event *ret_event,
                          struct error *error);

struct server_saved {
    char name[64];
    int64_t bytes;
    uint32_t crc;
    int64_t updates, empty;
    struct ticket_set tickets; /* released by the caller */
};
/* Orders every server to write its shard of the values into `directory`, and waits until all have.
 *
 * ERROR_UNAVAILABLE: a server was lost. ERROR_NO_SPACE, ERROR_SYSTEM: a server could not write, or its disk takes too long;
 * in the latter case the server refuses other saves until it has finished this one. A `last` save, and a save after
 * EVENT_OVER, also wait for servers that still write an earlier save. May be called after dispatcher_cancel; it then fails
 * with ERROR_CANCELLED if a disk takes too long.
 *
 * `last`: the chief or some servers leave after this save. From then on the servers acknowledge no update until a chief calls
 * dispatcher_begin, because an update after the save would be lost. */
int dispatcher_save(struct dispatcher *dispatcher, const char *directory, bool last,
                    struct server_saved saved[PS_SERVERS_MAX], struct error *error);

/* Returns the servers that were asked to leave and wait for a save, server i as bit i. Call it
 * after EVENT_SERVER_LEAVING; servers that have gone meanwhile are not included. */
uint64_t dispatcher_leaving(struct dispatcher *dispatcher);
/* Allows the servers of dispatcher_leaving to end, after a save; *ret_gone receives them as bits. Returns false, and allows
 * none to end, if one of them was asked to leave after the save was ordered: it may have acknowledged updates that the save
 * lacks, so the caller must save again. */
bool dispatcher_save_and_release(struct dispatcher *dispatcher, uint64_t *ret_gone);
/* Allows the servers of dispatcher_leaving to end without a save, because a save is impossible. */
void dispatcher_dismiss(struct dispatcher *dispatcher);

/* Returns whether a server is lost, or was replaced and holds no state, so that dispatcher_begin must be called again. */
bool dispatcher_misses_a_server(struct dispatcher *dispatcher);
/* Returns the number of updates lost so far. */
int64_t dispatcher_lost(struct dispatcher *dispatcher);
/* Returns the number of shares that were dropped so far because another worker had finished the
 * same share before. */
int64_t dispatcher_late(struct dispatcher *dispatcher);
/* Writes which member the crew waits for and what it must do, for the status; "" if it waits for none. May be called
 * from any thread. */
void dispatcher_describe(struct dispatcher *dispatcher, char text[PS_TEXT_MAX]);
/* Informs all members that the run is over, and waits a moment until they have disconnected. */
void dispatcher_finish(struct dispatcher *dispatcher);

#endif
