/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/ticket_scheduler.h"

#include <stdlib.h>

#include "common/memory.h"

/* One is computed while the next is on its way. */
#define HOLDINGS_MAX 2
/* Half of what a message can tell (ticket_set.h): a server may have some that the chief has not heard of. */
#define MOST_AHEAD (TICKET_SET_ABOVE_MAX / 2)
#define OVERDUE_NS ((int64_t)30000000000)
#define ROUNDS 16 /* of two tickets for each worker */

struct worker {
    bool live;
    bool overtaken; /* not live, since others would have waited for it; it computes yet */
    int64_t clock;  /* tickets finished */
    int64_t holds[HOLDINGS_MAX];
    int64_t since_ns[HOLDINGS_MAX];
    unsigned held;
    int64_t had;    /* Synchronous: 1 + the share of the ticket that it was given last; 0: none */
    double mean_ns; /* of a ticket; 0: none measured */
};

struct ticket_scheduler {
    struct ticket_scheduler_options options;
    struct worker workers[TICKET_SCHEDULER_WORKERS_MAX];
    struct ticket_set finished;
    int64_t next;      /* never given out; all below are finished, held or in `returned` */
    int64_t *returned; /* ascending */
    unsigned returned_count, returned_capacity;
    int64_t step;     /* Synchronous */
    bool begun;       /* a worker has been given a ticket */
    int64_t furthest; /* the highest clock at which a worker has begun a ticket */
};

static bool is_synchronous(const struct ticket_scheduler *scheduler)
{
    return scheduler->options.mode == PARAMETER_SERVER_SYNCHRONOUS;
}

struct ticket_scheduler *ticket_scheduler_new(const struct ticket_scheduler_options *options,
                                              const struct ticket_set *finished, int64_t step)
{
    struct ticket_scheduler *scheduler = memory_allocate(1, sizeof *scheduler);
    scheduler->options = *options;
    ticket_scheduler_rollback(scheduler, finished, step);
    return scheduler;
}

void ticket_scheduler_free(struct ticket_scheduler *scheduler)
{
    if (scheduler == NULL)
        return;
    ticket_set_release(&scheduler->finished);
    free(scheduler->returned);
    free(scheduler);
}

/* ---------------------------------------------------------------- held tickets */

static unsigned count_holders(const struct ticket_scheduler *scheduler, int64_t ticket, unsigned *ret_holder)
{
    unsigned holders = 0;
    for (unsigned i = 0; i < TICKET_SCHEDULER_WORKERS_MAX; i++)
        for (unsigned j = 0; scheduler->workers[i].live && j < scheduler->workers[i].held; j++)
            if (scheduler->workers[i].holds[j] == ticket) {
                holders++;
                *ret_holder = i;
            }
    return holders;
}

static bool drop(struct worker *worker, int64_t ticket, int64_t *ret_since_ns)
{
    for (unsigned i = 0; i < worker->held; i++) {
        if (worker->holds[i] != ticket)
            continue;
        *ret_since_ns = worker->since_ns[i];
        worker->held--;
        for (; i < worker->held; i++) {
            worker->holds[i] = worker->holds[i + 1];
            worker->since_ns[i] = worker->since_ns[i + 1];
        }
        return true;
    }
    return false;
}

static void hold(struct worker *worker, int64_t ticket, int64_t now_ns)
{
    worker->holds[worker->held] = ticket;
    worker->since_ns[worker->held++] = now_ns;
}

static void put_back(struct ticket_scheduler *scheduler, int64_t ticket)
{
    unsigned other, at = scheduler->returned_count;
    if (ticket_set_has(&scheduler->finished, ticket) || count_holders(scheduler, ticket, &other) > 0)
        return;
    if (at == scheduler->returned_capacity) {
        scheduler->returned_capacity = 2 * at + 8;
        scheduler->returned = memory_resize(scheduler->returned, scheduler->returned_capacity, sizeof(int64_t));
    }
    for (; at > 0 && scheduler->returned[at - 1] > ticket; at--)
        scheduler->returned[at] = scheduler->returned[at - 1];
    scheduler->returned[at] = ticket;
    scheduler->returned_count++;
}

static void remove_returned(struct ticket_scheduler *scheduler, unsigned at)
{
    scheduler->returned_count--;
    for (; at < scheduler->returned_count; at++)
        scheduler->returned[at] = scheduler->returned[at + 1];
}

/* ---------------------------------------------------------------- coming and going */

/* Returns a lower bound of the slowest worker's clock when a ticket was begun at `furthest`. */
static int64_t least_clock(const struct ticket_scheduler *scheduler)
{
    int64_t least = scheduler->furthest - scheduler->options.staleness;
    return scheduler->options.mode == PARAMETER_SERVER_BOUNDED_STALENESS && least > 0 ? least : 0;
}

static int64_t slowest_clock(const struct ticket_scheduler *scheduler)
{
    int64_t slowest = INT64_MAX;
    for (unsigned i = 0; i < TICKET_SCHEDULER_WORKERS_MAX; i++)
        if (scheduler->workers[i].live && scheduler->workers[i].clock < slowest)
            slowest = scheduler->workers[i].clock;
    return slowest == INT64_MAX ? least_clock(scheduler) : slowest;
}

void ticket_scheduler_join(struct ticket_scheduler *scheduler, unsigned worker)
{
    ticket_scheduler_leave(scheduler, worker);
    int64_t clock = slowest_clock(scheduler);
    scheduler->workers[worker] = (struct worker){.live = true, .clock = clock};
}

void ticket_scheduler_note_furthest(struct ticket_scheduler *scheduler, int64_t clock)
{
    if (clock > scheduler->furthest)
        scheduler->furthest = clock;
}

int64_t ticket_scheduler_furthest(const struct ticket_scheduler *scheduler)
{
    return scheduler->furthest;
}

/* Other workers cannot have passed this one while it counted among the clocks, nor before the first ticket was handed out; its clock is
 * used then. Under an earlier chief they may have passed it, so otherwise the clock is only raised. The worker began its last finished
 * ticket at `clock` - 1. */
bool ticket_scheduler_rejoin(struct ticket_scheduler *scheduler, unsigned worker, int64_t clock, int64_t ticket)
{
    bool waited_for = scheduler->workers[worker].live || !scheduler->begun;
    int64_t since_ns;
    bool keeps = scheduler->workers[worker].live && drop(&scheduler->workers[worker], ticket, &since_ns);
    ticket_scheduler_join(scheduler, worker);
    if (keeps)
        hold(&scheduler->workers[worker], ticket, since_ns);
    if (waited_for || clock > scheduler->workers[worker].clock)
        scheduler->workers[worker].clock = clock;
    ticket_scheduler_note_furthest(scheduler, clock - 1);
    if (scheduler->workers[worker].clock < least_clock(scheduler))
        scheduler->workers[worker].clock = least_clock(scheduler);
    return keeps;
}

bool ticket_scheduler_note_clock(struct ticket_scheduler *scheduler, unsigned worker, int64_t clock)
{
    if (!scheduler->workers[worker].live || clock <= scheduler->workers[worker].clock)
        return false;
    scheduler->workers[worker].clock = clock;
    ticket_scheduler_note_furthest(scheduler, clock - 1);
    return true;
}

int64_t ticket_scheduler_clock(const struct ticket_scheduler *scheduler, unsigned worker)
{
    return scheduler->workers[worker].clock;
}

void ticket_scheduler_leave(struct ticket_scheduler *scheduler, unsigned number)
{
    struct worker *worker = &scheduler->workers[number];
    worker->overtaken = false;
    if (!worker->live)
        return;
    worker->live = false;
    for (unsigned i = 0; i < worker->held; i++)
        put_back(scheduler, worker->holds[i]);
    worker->held = 0;
}

bool ticket_scheduler_is_there(const struct ticket_scheduler *scheduler, unsigned worker)
{
    return scheduler->workers[worker].live;
}

unsigned ticket_scheduler_live(const struct ticket_scheduler *scheduler)
{
    unsigned live = 0;
    for (unsigned i = 0; i < TICKET_SCHEDULER_WORKERS_MAX; i++)
        live += scheduler->workers[i].live;
    return live;
}

/* ---------------------------------------------------------------- giving out */

static bool is_allowed(const struct ticket_scheduler *scheduler, const struct worker *worker)
{
    if (worker->held == HOLDINGS_MAX || (is_synchronous(scheduler) && worker->held > 0))
        return false;
    if (scheduler->options.mode != PARAMETER_SERVER_BOUNDED_STALENESS)
        return true;
    return worker->clock + worker->held - slowest_clock(scheduler) <= scheduler->options.staleness;
}

/* Counts the workers that `worker` would have to wait for. */
static unsigned count_behind(const struct ticket_scheduler *scheduler, const struct worker *worker, unsigned *ret_one)
{
    unsigned behind = 0;
    for (unsigned i = 0; i < TICKET_SCHEDULER_WORKERS_MAX; i++) {
        if (!scheduler->workers[i].live || scheduler->workers[i].clock >= worker->clock - scheduler->options.staleness)
            continue;
        *ret_one = i;
        behind++;
    }
    return behind;
}

static unsigned count_overtaken(const struct ticket_scheduler *scheduler)
{
    unsigned overtaken = 0;
    for (unsigned i = 0; i < TICKET_SCHEDULER_WORKERS_MAX; i++)
        overtaken += scheduler->workers[i].overtaken;
    return overtaken;
}

/* Does nothing for a ticket requested in advance: workers behind may catch up while the one before
 * it is computed. Nor if the worker would still have to wait for another. */
bool ticket_scheduler_overtake(struct ticket_scheduler *scheduler, unsigned number, unsigned *ret_overtaken)
{
    const struct worker *worker = &scheduler->workers[number];
    if (scheduler->options.mode != PARAMETER_SERVER_BOUNDED_STALENESS || scheduler->options.backup_workers == 0 ||
        !worker->live || worker->held > 0)
        return false;
    unsigned behind = count_behind(scheduler, worker, ret_overtaken);
    if (behind == 0 || behind + count_overtaken(scheduler) > scheduler->options.backup_workers)
        return false;
    ticket_scheduler_leave(scheduler, *ret_overtaken);
    scheduler->workers[*ret_overtaken].overtaken = true;
    return true;
}

bool ticket_scheduler_is_overtaken(const struct ticket_scheduler *scheduler, unsigned worker)
{
    return scheduler->workers[worker].overtaken;
}

static int64_t ticket_limit(const struct ticket_scheduler *scheduler)
{
    const struct ticket_scheduler_options *options = &scheduler->options;
    int64_t limit = is_synchronous(scheduler)
                        ? (scheduler->step + 1) * options->tickets_per_step
                        : scheduler->finished.low + (options->most_ahead > 0 ? options->most_ahead : MOST_AHEAD);
    return limit < options->end ? limit : options->end;
}

static bool take_returned(struct ticket_scheduler *scheduler, int64_t ticket)
{
    for (unsigned i = 0; i < scheduler->returned_count; i++)
        if (scheduler->returned[i] == ticket) {
            remove_returned(scheduler, i);
            return true;
        }
    return false;
}

/* The worker may have read this share's examples while the step before was still running. */
static bool take_the_same_share(struct ticket_scheduler *scheduler, const struct worker *worker, int64_t *ret_ticket)
{
    int64_t ticket = scheduler->step * scheduler->options.tickets_per_step + worker->had - 1;
    if (!is_synchronous(scheduler) || worker->had == 0)
        return false;
    *ret_ticket = ticket;
    if (take_returned(scheduler, ticket))
        return true;
    if (ticket < scheduler->next || ticket >= ticket_limit(scheduler) || ticket_set_has(&scheduler->finished, ticket))
        return false;
    while (scheduler->next < ticket)
        put_back(scheduler, scheduler->next++);
    scheduler->next++;
    return true;
}

static bool take_free(struct ticket_scheduler *scheduler, const struct worker *worker, int64_t *ret_ticket)
{
    if (take_the_same_share(scheduler, worker, ret_ticket))
        return true;
    if (scheduler->returned_count > 0) {
        *ret_ticket = scheduler->returned[0];
        remove_returned(scheduler, 0);
        return true;
    }
    while (scheduler->next < ticket_limit(scheduler) && ticket_set_has(&scheduler->finished, scheduler->next))
        scheduler->next++;
    if (scheduler->next >= ticket_limit(scheduler))
        return false;
    *ret_ticket = scheduler->next++;
    return true;
}

/* Returns how long the last worker to take a ticket has held it, and finds the worker that has held it longest; -1: no worker holds it. */
static int64_t held_ns(const struct ticket_scheduler *scheduler, unsigned but, int64_t ticket, int64_t now_ns,
                       unsigned *ret_first, int64_t *ret_longest_ns)
{
    int64_t shortest_ns = -1, longest_ns = -1;
    for (unsigned i = 0; i < TICKET_SCHEDULER_WORKERS_MAX; i++) {
        const struct worker *worker = &scheduler->workers[i];
        for (unsigned j = 0; i != but && worker->live && j < worker->held; j++) {
            int64_t ns = now_ns - worker->since_ns[j];
            if (worker->holds[j] != ticket)
                continue;
            shortest_ns = shortest_ns < 0 || ns < shortest_ns ? ns : shortest_ns;
            if (ns > longest_ns)
                *ret_first = i;
            longest_ns = ns > longest_ns ? ns : longest_ns;
        }
    }
    *ret_longest_ns = longest_ns;
    return shortest_ns;
}

/* Async: takes the lowest unfinished ticket if its holders do not finish it. */
static bool take_overdue(const struct ticket_scheduler *scheduler, unsigned taker, int64_t now_ns, int64_t *ret_ticket)
{
    const struct worker *worker = &scheduler->workers[taker];
    int64_t low = scheduler->finished.low, longest_ns;
    int64_t overdue_ns = scheduler->options.overdue_ns > 0 ? scheduler->options.overdue_ns : OVERDUE_NS;
    bool is_far = scheduler->next - low >= ROUNDS * HOLDINGS_MAX * (int64_t)ticket_scheduler_live(scheduler);
    unsigned first;
    if (!is_far && scheduler->next < ticket_limit(scheduler))
        return false;
    for (unsigned i = 0; i < worker->held; i++)
        if (worker->holds[i] == low)
            return false;
    *ret_ticket = low;
    return held_ns(scheduler, taker, low, now_ns, &first, &longest_ns) >= overdue_ns;
}

bool ticket_scheduler_is_overdue(const struct ticket_scheduler *scheduler, unsigned taker, int64_t ticket,
                                 int64_t now_ns, unsigned *ret_holder, int64_t *ret_ns)
{
    return scheduler->options.mode == PARAMETER_SERVER_ASYNC && ticket == scheduler->finished.low &&
           held_ns(scheduler, taker, ticket, now_ns, ret_holder, ret_ns) >= 0;
}

static bool is_slower(const struct worker *a, int64_t a_since, const struct worker *b, int64_t b_since)
{
    if (a->mean_ns != b->mean_ns)
        return a->mean_ns > b->mean_ns;
    return a_since < b_since;
}

/* Estimates how long a worker still needs for what it holds; one that is overdue, as long again as
 * it is overdue. */
static int64_t remaining_ns(const struct worker *worker, int64_t since_ns, int64_t now_ns)
{
    int64_t ahead = since_ns + (int64_t)worker->mean_ns - now_ns;
    return ahead > 0 ? ahead : -ahead;
}

/* Returns whether the taker would finish soon enough to help; otherwise it would only miss the next
 * step. At first no times are known, and it is tried. */
static bool helps(const struct worker *taker, const struct worker *holder, int64_t since_ns, int64_t now_ns)
{
    return holder->mean_ns == 0 || taker->mean_ns / 2 <= (double)remaining_ns(holder, since_ns, now_ns);
}

/* Takes a share that exactly one other worker computes, that of the slowest, if another double is
 * allowed. */
static bool take_double(struct ticket_scheduler *scheduler, unsigned taker, int64_t now_ns, int64_t *ret_ticket)
{
    const struct worker *slowest = NULL;
    int64_t since = 0;
    unsigned doubled = 0;
    for (unsigned i = 0; i < TICKET_SCHEDULER_WORKERS_MAX; i++) {
        const struct worker *worker = &scheduler->workers[i];
        unsigned other;
        if (!worker->live || worker->held == 0 || i == taker || ticket_set_has(&scheduler->finished, worker->holds[0]))
            continue;
        if (count_holders(scheduler, worker->holds[0], &other) > 1)
            doubled++;
        else if (slowest == NULL || is_slower(worker, worker->since_ns[0], slowest, since)) {
            slowest = worker;
            since = worker->since_ns[0];
        }
    }
    if (slowest == NULL || doubled / 2 >= scheduler->options.backup_workers ||
        !helps(&scheduler->workers[taker], slowest, since, now_ns))
        return false;
    *ret_ticket = slowest->holds[0];
    return true;
}

bool ticket_scheduler_take(struct ticket_scheduler *scheduler, unsigned number, int64_t now_ns, int64_t *ret_ticket)
{
    struct worker *worker = &scheduler->workers[number];
    int64_t ticket;
    if (!worker->live || !is_allowed(scheduler, worker))
        return false;
    bool found =
        (scheduler->options.mode == PARAMETER_SERVER_ASYNC && take_overdue(scheduler, number, now_ns, &ticket)) ||
        take_free(scheduler, worker, &ticket);
    if (!found && is_synchronous(scheduler) && scheduler->options.backup_workers > 0)
        found = take_double(scheduler, number, now_ns, &ticket);
    if (!found)
        return false;
    ticket_scheduler_note_furthest(scheduler, worker->clock + worker->held);
    hold(worker, ticket, now_ns);
    worker->had = ticket % scheduler->options.tickets_per_step + 1;
    scheduler->begun = true;
    *ret_ticket = ticket;
    return true;
}

static void measure(struct worker *worker, int64_t duration_ns)
{
    double weight = worker->mean_ns == 0 ? 1.0 : 0.3;
    worker->mean_ns += weight * ((double)duration_ns - worker->mean_ns);
}

bool ticket_scheduler_done(struct ticket_scheduler *scheduler, unsigned number, int64_t ticket, int64_t now_ns,
                           int64_t *ret_ns)
{
    struct worker *worker = &scheduler->workers[number];
    int64_t since_ns;
    *ret_ns = -1;
    if (worker->live && drop(worker, ticket, &since_ns)) {
        worker->clock++;
        *ret_ns = now_ns - since_ns;
        measure(worker, *ret_ns);
    }
    (void)take_returned(scheduler, ticket);
    return ticket_set_add(&scheduler->finished, ticket);
}

/* ---------------------------------------------------------------- steps */

int64_t ticket_scheduler_step(const struct ticket_scheduler *scheduler)
{
    return scheduler->step;
}

bool ticket_scheduler_step_is_complete(const struct ticket_scheduler *scheduler)
{
    return scheduler->step * scheduler->options.tickets_per_step < scheduler->options.end &&
           scheduler->finished.low >= ticket_limit(scheduler);
}

void ticket_scheduler_advance(struct ticket_scheduler *scheduler)
{
    scheduler->step++;
}

void ticket_scheduler_rollback(struct ticket_scheduler *scheduler, const struct ticket_set *finished, int64_t step)
{
    ticket_set_copy(&scheduler->finished, finished);
    scheduler->next = finished->low;
    scheduler->returned_count = 0;
    scheduler->step = step;
    for (unsigned i = 0; i < TICKET_SCHEDULER_WORKERS_MAX; i++)
        scheduler->workers[i].held = 0;
}

void ticket_scheduler_set_end(struct ticket_scheduler *scheduler, int64_t end)
{
    scheduler->options.end = end;
}

void ticket_scheduler_reset_clocks(struct ticket_scheduler *scheduler)
{
    scheduler->begun = false;
    scheduler->furthest = 0;
    for (unsigned i = 0; i < TICKET_SCHEDULER_WORKERS_MAX; i++)
        scheduler->workers[i].clock = 0;
}

/* ---------------------------------------------------------------- looking on */

const struct ticket_set *ticket_scheduler_finished(const struct ticket_scheduler *scheduler)
{
    return &scheduler->finished;
}

bool ticket_scheduler_is_over(const struct ticket_scheduler *scheduler)
{
    if (is_synchronous(scheduler))
        return scheduler->step * scheduler->options.tickets_per_step >= scheduler->options.end;
    return scheduler->finished.low >= scheduler->options.end;
}

bool ticket_scheduler_is_late(const struct ticket_scheduler *scheduler, unsigned number, int64_t now_ns,
                              int64_t *ret_ns)
{
    const struct worker *worker = &scheduler->workers[number];
    if (!worker->live || worker->held == 0 || !ticket_set_has(&scheduler->finished, worker->holds[0]))
        return false;
    *ret_ns = now_ns - worker->since_ns[0];
    return true;
}

bool ticket_scheduler_slowest(const struct ticket_scheduler *scheduler, int64_t now_ns, unsigned *ret_worker,
                              int64_t *ret_ns)
{
    int64_t longest = -1;
    for (unsigned i = 0; i < TICKET_SCHEDULER_WORKERS_MAX; i++) {
        const struct worker *worker = &scheduler->workers[i];
        if (!worker->live || worker->held == 0 || ticket_set_has(&scheduler->finished, worker->holds[0]) ||
            now_ns - worker->since_ns[0] <= longest)
            continue;
        longest = now_ns - worker->since_ns[0];
        *ret_worker = i;
    }
    *ret_ns = longest;
    return longest >= 0;
}
