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
#include "worker/parameter_server/message.h"
#include "worker/parameter_server/ticket_scheduler.h"

struct dispatcher;
struct dispatcher_plan;

/* What happens to workers and tickets. */
#define TICKET_FATES(X)                                                                                                \
    X(JOIN, "join")   /* a worker has joined (again), and holds no ticket; `ticket`: its clock (ticket_scheduler.h) */ \
    X(LEAVE, "leave") /* it has left; tickets that it held may go to others */                                         \
    X(TAKE, "take")   /* it was given a ticket */                                                                      \
    X(DONE, "done")   /* it has reported a ticket that it held as done, which counts */                                \
    X(AGAIN, "again") /* it has reported a ticket that another had done before */                                      \
    X(LATE, "late")   /* as DONE, for a ticket that it held no more, having been taken for lost */                     \
    X(HOLD, "hold")   /* after JOIN: it still holds this ticket from before */                                         \
    X(CLOCK, "clock") /* it has finished more than its chiefs knew; `ticket`: its clock */                             \
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
    int64_t save_ms;      /* time for a save during which no disk makes progress; 0: 120000 */
    int64_t last_save_ms; /* the same after dispatcher_cancel; 0: 15000, as long as a leaving server waits */
    /* Returns a number that changes whenever a disk has made progress with a save's shards. NULL:
     * progress is not known and does not extend the time. */
    int64_t (*written)(void *context, const char *directory);
};

int dispatcher_start(const struct dispatcher_options *options, struct dispatcher **ret_dispatcher, struct error *error);
void dispatcher_free(struct dispatcher *dispatcher);
uint16_t dispatcher_port(const struct dispatcher *dispatcher);
/* Makes dispatcher_await_servers, dispatcher_begin and dispatcher_next_event fail with
 * ERROR_CANCELLED, now and forever; see dispatcher_save for its own case. May be called from any
 * thread. */
void dispatcher_cancel(struct dispatcher *dispatcher);

struct server_standing {
    uint64_t nonce;
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

struct server_start {
    bool needed;      /* false: it continues with what it holds */
    const char *path; /* of a checkpoint; "": a fresh start */
    struct ticket_set tickets;
    int64_t updates, empty;
};
struct dispatcher_plan {
    uint32_t lineage;
    int64_t base_step, base_epoch, base_consumed; /* where ticket base_step * per_step begins */
    int64_t step;                                 /* Synchronous: steps applied */
    int64_t end;                                  /* of the run, in tickets; 0: unchanged */
    bool keeps_tickets; /* finished and held tickets remain so: only some servers are restored, or none */
    struct ticket_set finished;
    const struct server_start *starts; /* by server */
};
/* Sends the starts, waits until every server has loaded its state, then hands out tickets.
 * *ret_lost: updates that were acknowledged and that no server has any more. ERROR_UNAVAILABLE: a
 * server was lost meanwhile. */
int dispatcher_begin(struct dispatcher *dispatcher, const struct dispatcher_plan *plan, int64_t *ret_lost,
                     struct error *error);

enum dispatcher_event_kind { EVENT_NONE, EVENT_STEP, EVENT_SERVER_LOST, EVENT_SERVER_LEAVING, EVENT_TEXT, EVENT_OVER };
struct dispatcher_event {
    enum dispatcher_event_kind kind;
    int64_t step; /* steps finished; asynchronous: tickets / per_step */
    double loss, gradient_norm;
    int64_t correct, targets, examples;
    int64_t at_ns; /* CLOCK_MONOTONIC */
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
/* Has every server write its shard into `directory`, and waits for all. ERROR_UNAVAILABLE: a server
 * was lost. ERROR_NO_SPACE, ERROR_SYSTEM: a server could not write. ERROR_SYSTEM: a disk takes too
 * long; that server refuses other saves until it has finished this one. A `last` save and a save
 * after EVENT_OVER wait for such a server, as long as for their own shards. May be called after
 * dispatcher_cancel, which does not end it at once; it then fails with ERROR_CANCELLED if a disk
 * takes too long. `last`: the chief or servers leave after the save. Servers then answer nobody
 * until a chief begins again, since no ticket can be finished until then, and what one of them
 * acknowledged would be lost. */
int dispatcher_save(struct dispatcher *dispatcher, const char *directory, bool last,
                    struct server_saved saved[PS_SERVERS_MAX], struct error *error);

/* Returns the servers that were asked to leave and wait for a save, server i as bit i. Call it
 * after EVENT_SERVER_LEAVING; servers that have gone meanwhile are not included. */
uint64_t dispatcher_leaving(struct dispatcher *dispatcher);
/* Lets these servers go after a save, and returns them. Returns false, and lets none go, if one was
 * asked to leave after the save was ordered: it has acknowledged more since, and no save has that.
 * Save again then. */
bool dispatcher_save_and_release(struct dispatcher *dispatcher, uint64_t *ret_gone);
/* Lets these servers go without a save, because they cannot be saved. */
void dispatcher_dismiss(struct dispatcher *dispatcher);

/* Returns whether a server is lost, or back without a state: it answers nothing before the next
 * dispatcher_begin. */
bool dispatcher_misses_a_server(struct dispatcher *dispatcher);
/* Returns the number of updates lost so far. */
int64_t dispatcher_lost(struct dispatcher *dispatcher);
/* Returns the number of shares that were dropped so far because another worker had finished the
 * same share before. */
int64_t dispatcher_late(struct dispatcher *dispatcher);
/* Describes which member the crew waits for, and for what; "" if for none. May be called from any
 * thread. */
void dispatcher_describe(struct dispatcher *dispatcher, char text[PS_TEXT_MAX]);
/* Informs all members that the run is over, and waits a moment until they have disconnected. */
void dispatcher_finish(struct dispatcher *dispatcher);

#endif
