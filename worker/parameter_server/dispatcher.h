/* SPDX-License-Identifier: Apache-2.0
 *
 * The chief of a parameter-server crew, on the wire: it leads the servers (a
 * control stream to each) and hands out tickets to workers (who come to it), by
 * the mind of the dispenser. What needs a disk or a person is left to its caller,
 * who waits for events:
 *
 *     dispatcher_start
 *     again: dispatcher_await_servers     all are there, and what each holds
 *            dispatcher_begin             tells them what to start from; tickets flow
 *            dispatcher_next_event …      until SERVER_LOST: goto again
 *     dispatcher_finish, dispatcher_free
 *
 * Everything happens on the rpc's thread; the functions are for one other thread.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_DISPATCHER_H
#define COXSWAIN_PARAMETER_SERVER_DISPATCHER_H

#include "worker/coordination/member.h"
#include "worker/parameter_server/dispenser.h"
#include "worker/parameter_server/message.h"

struct dispatcher;
struct dispatcher_plan;

/* What a dispatcher does with workers and tickets. */
#define TICKET_FATES(X)                                                                                                \
    X(JOIN, "join")   /* a worker is there (again), and holds nothing; `ticket`: its clock (dispenser.h) */            \
    X(LEAVE, "leave") /* it is not; what it held may go to others */                                                   \
    X(TAKE, "take")   /* it was given a ticket */                                                                      \
    X(DONE, "done")   /* it has said that one which it held is done, and that counts */                                \
    X(AGAIN, "again") /* likewise, but another had done it before */                                                   \
    X(LATE, "late")   /* as DONE, of one that it held no more: a worker that was taken for lost */                     \
    X(HOLD, "hold")   /* after JOIN: but this one, which it had before and has still */                                \
    X(CLOCK, "clock") /* it has finished more than its chiefs knew; `ticket`: its clock */                             \
    X(VOID, "void")   /* whatever is held is held no more; all below the ticket are finished */                        \
    X(BACK, "back")   /* before that: the crew goes back, and all clocks begin anew */                                 \
    X(KEPT, "kept")   /* after that: so is this one */
enum ticket_fate {
#define X(name, text) TICKET_##name,
    TICKET_FATES(X)
#undef X
};

struct dispatcher_options {
    const char *job_uid;
    struct generation generation; /* attempt and epoch of the chief */
    const char *listen_address;
    uint16_t port; /* 0: any free one */
    const struct crew_seat *servers;
    unsigned server_count;
    const struct crew_seat *workers; /* for their names alone; a chief of its own may be among them. NULL: not known */
    unsigned worker_count;
    uint32_t digest;
    struct dispenser_options dispenser;
    double gradient_clip_norm;                   /* Synchronous; 0: none */
    double (*rate)(void *context, int64_t step); /* of step 1 …; any thread */
    /* Asynchronous: whether a ticket's share has no examples under such a plan, and so no update can be lost with it. NULL: none is so;
     * any thread. */
    bool (*is_empty)(void *context, const struct dispatcher_plan *plan, int64_t ticket);
    /* Hears of each, in the order in which it happens; quickly, for everybody waits. NULL: nobody. Any thread. */
    void (*witness)(void *context, enum ticket_fate fate, unsigned worker, int64_t ticket);
    void *context;
    int64_t look_ms;     /* how often to look whether a server is another process now; 0: as lookout.h says */
    int64_t death_ms;    /* silence of a worker that is death; 0: 5000 */
    int64_t patience_ms; /* of dispatcher_describe; 0: as waiting.h says */
    int64_t save_ms;     /* that the servers have for a save, with which no disk gets on; 0: 120000 */
    int64_t
        last_save_ms; /* the same once dispatcher_cancel was called; 0: 15000, as a server that is asked to leave waits for one */
    /* A number that is another one whenever a disk has got on with a save's shards. NULL: nobody knows, and none does. */
    int64_t (*written)(void *context, const char *directory);
};

int dispatcher_start(const struct dispatcher_options *options, struct dispatcher **ret_dispatcher, struct error *error);
void dispatcher_free(struct dispatcher *dispatcher);
uint16_t dispatcher_port(const struct dispatcher *dispatcher);
/* Ends waiting with ERROR_CANCELLED. From any thread, for good. */
void dispatcher_cancel(struct dispatcher *dispatcher);

struct server_standing {
    uint64_t incarnation;
    bool holds_state;
    uint32_t lineage;
    int64_t clock, updates, empty;                /* as variables.h has them */
    int64_t base_step, base_epoch, base_consumed; /* of the plan that it was started by */
    struct ticket_set tickets;                    /* released by the caller */
};
/* ERROR_STALE when a server knows a newer chief, ERROR_FORBIDDEN when one is of another version. */
int dispatcher_await_servers(struct dispatcher *dispatcher, struct server_standing standings[PS_SERVERS_MAX],
                             struct error *error);
void server_standing_release(struct server_standing *standing);

struct server_start {
    bool needed;      /* else it goes on with what it holds */
    const char *path; /* of a checkpoint; "": afresh */
    struct ticket_set tickets;
    int64_t updates, empty;
};
struct dispatcher_plan {
    uint32_t lineage;
    int64_t base_step, base_epoch, base_consumed; /* where ticket base_step * per_step begins */
    int64_t step;                                 /* Synchronous: steps applied */
    int64_t end;                                  /* of the run; 0: the dispenser's */
    bool keeps_tickets;                           /* what is finished and held stays so: a server alone was restored */
    struct ticket_set finished;
    const struct server_start *starts; /* by server */
};
/* Sends the starts and waits until every server has what it needs; then tickets flow. *ret_lost: updates that had been
 * acknowledged and are in no server's table any more. ERROR_UNAVAILABLE: a server was lost meanwhile. */
int dispatcher_begin(struct dispatcher *dispatcher, const struct dispatcher_plan *plan, int64_t *ret_lost,
                     struct error *error);

enum dispatcher_event_kind { EVENT_NONE, EVENT_STEP, EVENT_SERVER_LOST, EVENT_SERVER_PARTS, EVENT_TEXT, EVENT_OVER };
struct dispatcher_event {
    enum dispatcher_event_kind kind;
    int64_t step; /* steps finished; asynchronous: tickets / per_step */
    double loss, gradient_norm;
    int64_t correct, targets, examples;
    int64_t at_ns; /* when, on the clock that never jumps */
    char text[PS_TEXT_MAX];
};
/* EVENT_NONE after `timeout_ms` without any. Errors: ERROR_STALE, ERROR_CANCELLED. */
int dispatcher_next_event(struct dispatcher *dispatcher, int64_t timeout_ms, struct dispatcher_event *ret_event,
                          struct error *error);

struct server_saved {
    char name[64];
    int64_t bytes;
    uint32_t crc;
    int64_t updates, empty;
    struct ticket_set tickets; /* released by the caller */
};
/* Has every server write its shard into a directory; waits for all. ERROR_UNAVAILABLE when one was lost, ERROR_SYSTEM when its disk
 * takes too long: it refuses all saves until it has come to the end of that one, which `last` and a save behind EVENT_OVER wait
 * for, as long as for their own. It may be called after
 * dispatcher_cancel too, which does not end it at once: ERROR_CANCELLED when a server's disk takes too long then. `last`, where
 * chief or servers leave next: servers answer nobody after it before a chief begins again, for no ticket can be finished until
 * then, and what each of them acknowledged would be its alone. */
int dispatcher_save(struct dispatcher *dispatcher, const char *directory, bool last,
                    struct server_saved saved[PS_SERVERS_MAX], struct error *error);

/* Servers that were asked to leave and wait for a save, server i as bit i: after EVENT_SERVER_PARTS, unless they have gone. */
uint64_t dispatcher_parting(struct dispatcher *dispatcher);
/* After a save: those may go, and are returned. False, and nobody goes, when one was asked since the save was ordered, for it has
 * acknowledged more, and there is no save without the others: save again. */
bool dispatcher_see_off(struct dispatcher *dispatcher, uint64_t *ret_gone);
/* They cannot be saved: each goes as it is. */
void dispatcher_dismiss(struct dispatcher *dispatcher);

/* Whether a server is away, or back without a state: it answers nothing before the next dispatcher_begin. */
bool dispatcher_misses_a_server(struct dispatcher *dispatcher);
/* Updates lost in all. */
int64_t dispatcher_lost(struct dispatcher *dispatcher);
/* Shares in all that came late, after a backup worker's answer to the same (or before it was needed), and were dropped. */
int64_t dispatcher_late(struct dispatcher *dispatcher);
/* Whom the crew waits for, and for what; "" for nobody. From any thread. */
void dispatcher_describe(struct dispatcher *dispatcher, char text[PS_TEXT_MAX]);
/* The run is over: tells everybody, waits a moment until all have heard. */
void dispatcher_finish(struct dispatcher *dispatcher);

#endif
