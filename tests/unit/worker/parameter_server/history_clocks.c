/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/worker/parameter_server/history_clocks.h"

#include <criterion/criterion.h>

#include "worker/parameter_server/dispatcher.h"

/* A worker's process, over the whole history and all chiefs. */
struct clock_of_worker {
    bool there;       /* among the clocks, as far as it knows or could */
    bool joined;      /* the present chief */
    bool fresh;       /* it has never joined */
    int64_t clock;    /* tickets that it has pushed, from where it began */
    int64_t told;     /* the same, as far as a chief knows */
    bool unsure;      /* whether it had finished one more than it told when it came back */
    bool computing;   /* and nobody has gone back since it began to */
    int64_t holds[2]; /* by the present chief's word */
    unsigned held;
};

struct clocks {
    struct clock_of_worker workers[HISTORY_WORKERS];
    bool goes_back;    /* the chief, as soon as it begins */
    bool taken;        /* the present chief has given somebody a ticket */
    int64_t chief_ms;  /* when it was started */
    int64_t waited_ms; /* shortest wait for an absent worker before the first ticket of a chief; -1: none */
    int64_t pushed;    /* the highest clock at which somebody has begun what is in the servers */
    int64_t known;     /* the same, as far as the present chief must know */
    int64_t behind;    /* the most that somebody was let in behind that */
};

static int64_t slowest_clock(const struct clocks *clocks)
{
    int64_t slowest = INT64_MAX;
    for (unsigned i = 0; i < HISTORY_WORKERS; i++)
        if (clocks->workers[i].there && clocks->workers[i].clock < slowest)
            slowest = clocks->workers[i].clock;
    return slowest;
}

static int find_held(const struct clock_of_worker *clock, int64_t ticket)
{
    for (unsigned i = 0; i < clock->held; i++)
        if (clock->holds[i] == ticket)
            return (int)i;
    return -1;
}

/* A new chief waits for those that were there for a while only. */
static void give_up_the_absent(struct clocks *clocks)
{
    for (unsigned i = 0; i < HISTORY_WORKERS; i++)
        clocks->workers[i].there &= clocks->workers[i].joined;
}

/* A chief may choose where a process begins that is new, was gone or was never seen; a process that was there keeps its clock. */
static void join(struct clocks *clocks, unsigned number, int64_t given)
{
    struct clock_of_worker *worker = &clocks->workers[number];
    worker->unsure = !worker->there && !worker->fresh;
    if (!worker->there || worker->fresh)
        worker->clock = given;
    worker->there = worker->joined = true;
    worker->fresh = false;
    worker->held = 0;
    worker->told = given;
    if (clocks->known - given > clocks->behind)
        clocks->behind = clocks->known - given;
}

/* The chief gives it, or it has it still, and nobody else has it. */
static void hold(struct clocks *clocks, const struct history_entry *entry)
{
    struct clock_of_worker *worker = &clocks->workers[entry->worker];
    for (unsigned i = 0; i < HISTORY_WORKERS; i++)
        cr_expect(find_held(&clocks->workers[i], entry->ticket) < 0, "ticket %lld was given twice",
                  (long long)entry->ticket);
    cr_assert(worker->held < 2);
    worker->holds[worker->held++] = entry->ticket;
}

/* Those that were there may be about to come back with their clocks. */
static void note_wait(struct clocks *clocks, int64_t now_ms)
{
    int64_t waited_ms = now_ms - clocks->chief_ms;
    for (unsigned i = 0; i < HISTORY_WORKERS && !clocks->taken; i++)
        if (clocks->workers[i].there && !clocks->workers[i].joined &&
            (clocks->waited_ms < 0 || waited_ms < clocks->waited_ms))
            clocks->waited_ms = waited_ms;
}

static void take(struct clocks *clocks, const struct history_entry *entry)
{
    note_wait(clocks, entry->at_ms);
    hold(clocks, entry);
    give_up_the_absent(clocks);
    clocks->taken = true;
}

static void done(struct clocks *clocks, struct clock_of_worker *worker, int64_t ticket)
{
    int place = find_held(worker, ticket);
    if (worker->told > clocks->known)
        clocks->known = worker->told;
    worker->told++;
    cr_assert(place >= 0);
    worker->held--;
    if (place == 0)
        worker->holds[0] = worker->holds[1];
}

/* How far it is ahead. One that has lost its place meanwhile is no longer among the clocks. */
static int64_t begin_work(struct clocks *clocks, unsigned number)
{
    struct clock_of_worker *worker = &clocks->workers[number];
    worker->computing = true;
    int64_t slowest = slowest_clock(clocks);
    return worker->there ? worker->clock - slowest : 0;
}

/* It asks the servers. */
static void start_chief_anew(struct clocks *clocks)
{
    clocks->taken = false;
    if (clocks->pushed > clocks->known)
        clocks->known = clocks->pushed;
    for (unsigned i = 0; i < HISTORY_WORKERS; i++) {
        clocks->workers[i].joined = false;
        clocks->workers[i].held = 0;
    }
}

/* Nothing is held any more; where the crew goes back, all begin together again. */
static void make_void(struct clocks *clocks)
{
    for (unsigned i = 0; i < HISTORY_WORKERS; i++) {
        clocks->workers[i].held = 0;
        if (clocks->goes_back) {
            clocks->workers[i].clock = 0;
            clocks->workers[i].computing = false;
        }
    }
    if (clocks->goes_back) {
        clocks->pushed = clocks->known = 0;
        clocks->chief_ms = INT64_MIN / 2; /* there is no clock to wait for */
    }
    clocks->taken &= !clocks->goes_back;
    clocks->goes_back = false;
}

/* Reads an entry; how far ahead of the slowest it finds a worker. */
static int64_t read_entry(struct clocks *clocks, const struct history_entry *entry)
{
    struct clock_of_worker *worker = &clocks->workers[entry->worker];
    switch (entry->what) {
    case CHIEF_STARTED:
        start_chief_anew(clocks);
        clocks->chief_ms = entry->at_ms;
        break;
    case CREW_GOES_BACK:
        clocks->goes_back = true;
        break;
    case WORKER_STARTED:
        worker->there = worker->computing = false;
        worker->fresh = true;
        worker->clock = 0;
        break;
    case TICKET_JOIN:
        join(clocks, entry->worker, entry->ticket);
        break;
    case TICKET_LEAVE:
        worker->there = false;
        worker->held = 0;
        break;
    case TICKET_VOID:
        make_void(clocks);
        break;
    case TICKET_HOLD:
        hold(clocks, entry);
        break;
    case TICKET_TAKE:
        take(clocks, entry);
        break;
    case TICKET_DONE:
    case TICKET_AGAIN:
        done(clocks, worker, entry->ticket);
        break;
    case TICKET_CLOCK:
        worker->clock += worker->unsure && entry->ticket == worker->clock + 1;
        worker->unsure = false;
        worker->told = entry->ticket;
        break;
    case WORK_BEGUN:
        return begin_work(clocks, entry->worker);
    case WORK_PUSHED:
        if (worker->computing && worker->clock > clocks->pushed)
            clocks->pushed = worker->clock;
        worker->clock += worker->computing;
        worker->computing = false;
        break;
    }
    return 0;
}

struct clocks_found history_clocks_read(const struct history_entry *history, unsigned count)
{
    struct clocks clocks = {.waited_ms = -1};
    int64_t furthest = 0;
    for (unsigned i = 0; i < count; i++) {
        int64_t ahead = read_entry(&clocks, &history[i]);
        furthest = ahead > furthest ? ahead : furthest;
    }
    return (struct clocks_found){.furthest = furthest, .behind = clocks.behind, .waited_ms = clocks.waited_ms};
}
