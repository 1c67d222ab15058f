/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/dispenser.h"

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

struct dispenser {
    struct dispenser_options options;
    struct worker workers[DISPENSER_WORKERS_MAX];
    struct ticket_set finished;
    int64_t next;      /* never given out; all below are finished, held or in `returned` */
    int64_t *returned; /* ascending */
    unsigned returned_count, returned_capacity;
    int64_t step;     /* Synchronous */
    bool begun;       /* a worker has been given a ticket */
    int64_t furthest; /* the highest clock at which a worker has begun a ticket */
};

static bool is_synchronous(const struct dispenser *dispenser)
{
    return dispenser->options.mode == PARAMETER_SERVER_SYNCHRONOUS;
}

struct dispenser *dispenser_new(const struct dispenser_options *options, const struct ticket_set *finished,
                                int64_t step)
{
    struct dispenser *dispenser = memory_allocate(1, sizeof *dispenser);
    dispenser->options = *options;
    dispenser_rollback(dispenser, finished, step);
    return dispenser;
}

void dispenser_free(struct dispenser *dispenser)
{
    if (dispenser == NULL)
        return;
    ticket_set_release(&dispenser->finished);
    free(dispenser->returned);
    free(dispenser);
}

/* ---------------------------------------------------------------- held tickets */

static unsigned count_holders(const struct dispenser *dispenser, int64_t ticket, unsigned *ret_holder)
{
    unsigned holders = 0;
    for (unsigned i = 0; i < DISPENSER_WORKERS_MAX; i++)
        for (unsigned j = 0; dispenser->workers[i].live && j < dispenser->workers[i].held; j++)
            if (dispenser->workers[i].holds[j] == ticket) {
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

static void put_back(struct dispenser *dispenser, int64_t ticket)
{
    unsigned other, at = dispenser->returned_count;
    if (ticket_set_has(&dispenser->finished, ticket) || count_holders(dispenser, ticket, &other) > 0)
        return;
    if (at == dispenser->returned_capacity) {
        dispenser->returned_capacity = 2 * at + 8;
        dispenser->returned = memory_resize(dispenser->returned, dispenser->returned_capacity, sizeof(int64_t));
    }
    for (; at > 0 && dispenser->returned[at - 1] > ticket; at--)
        dispenser->returned[at] = dispenser->returned[at - 1];
    dispenser->returned[at] = ticket;
    dispenser->returned_count++;
}

static void remove_returned(struct dispenser *dispenser, unsigned at)
{
    dispenser->returned_count--;
    for (; at < dispenser->returned_count; at++)
        dispenser->returned[at] = dispenser->returned[at + 1];
}

/* ---------------------------------------------------------------- coming and going */

/* Returns a lower bound of the slowest worker's clock when a ticket was begun at `furthest`. */
static int64_t least_clock(const struct dispenser *dispenser)
{
    int64_t least = dispenser->furthest - dispenser->options.staleness;
    return dispenser->options.mode == PARAMETER_SERVER_BOUNDED_STALENESS && least > 0 ? least : 0;
}

static int64_t slowest_clock(const struct dispenser *dispenser)
{
    int64_t slowest = INT64_MAX;
    for (unsigned i = 0; i < DISPENSER_WORKERS_MAX; i++)
        if (dispenser->workers[i].live && dispenser->workers[i].clock < slowest)
            slowest = dispenser->workers[i].clock;
    return slowest == INT64_MAX ? least_clock(dispenser) : slowest;
}

void dispenser_join(struct dispenser *dispenser, unsigned worker)
{
    dispenser_leave(dispenser, worker);
    int64_t clock = slowest_clock(dispenser);
    dispenser->workers[worker] = (struct worker){.live = true, .clock = clock};
}

void dispenser_note_furthest(struct dispenser *dispenser, int64_t clock)
{
    if (clock > dispenser->furthest)
        dispenser->furthest = clock;
}

int64_t dispenser_furthest(const struct dispenser *dispenser)
{
    return dispenser->furthest;
}

/* Other workers cannot have passed this one while it counted among the clocks, nor before the first ticket was handed out; its clock is
 * used then. Under an earlier chief they may have passed it, so otherwise the clock is only raised. The worker began its last finished
 * ticket at `clock` - 1. */
bool dispenser_rejoin(struct dispenser *dispenser, unsigned worker, int64_t clock, int64_t ticket)
{
    bool waited_for = dispenser->workers[worker].live || !dispenser->begun;
    int64_t since_ns;
    bool keeps = dispenser->workers[worker].live && drop(&dispenser->workers[worker], ticket, &since_ns);
    dispenser_join(dispenser, worker);
    if (keeps)
        hold(&dispenser->workers[worker], ticket, since_ns);
    if (waited_for || clock > dispenser->workers[worker].clock)
        dispenser->workers[worker].clock = clock;
    dispenser_note_furthest(dispenser, clock - 1);
    if (dispenser->workers[worker].clock < least_clock(dispenser))
        dispenser->workers[worker].clock = least_clock(dispenser);
    return keeps;
}

bool dispenser_note_clock(struct dispenser *dispenser, unsigned worker, int64_t clock)
{
    if (!dispenser->workers[worker].live || clock <= dispenser->workers[worker].clock)
        return false;
    dispenser->workers[worker].clock = clock;
    dispenser_note_furthest(dispenser, clock - 1);
    return true;
}

int64_t dispenser_clock(const struct dispenser *dispenser, unsigned worker)
{
    return dispenser->workers[worker].clock;
}

void dispenser_leave(struct dispenser *dispenser, unsigned number)
{
    struct worker *worker = &dispenser->workers[number];
    worker->overtaken = false;
    if (!worker->live)
        return;
    worker->live = false;
    for (unsigned i = 0; i < worker->held; i++)
        put_back(dispenser, worker->holds[i]);
    worker->held = 0;
}

bool dispenser_is_there(const struct dispenser *dispenser, unsigned worker)
{
    return dispenser->workers[worker].live;
}

unsigned dispenser_live(const struct dispenser *dispenser)
{
    unsigned live = 0;
    for (unsigned i = 0; i < DISPENSER_WORKERS_MAX; i++)
        live += dispenser->workers[i].live;
    return live;
}

/* ---------------------------------------------------------------- giving out */

static bool is_allowed(const struct dispenser *dispenser, const struct worker *worker)
{
    if (worker->held == HOLDINGS_MAX || (is_synchronous(dispenser) && worker->held > 0))
        return false;
    if (dispenser->options.mode != PARAMETER_SERVER_BOUNDED_STALENESS)
        return true;
    return worker->clock + worker->held - slowest_clock(dispenser) <= dispenser->options.staleness;
}

/* Counts the workers that `worker` would have to wait for. */
static unsigned count_behind(const struct dispenser *dispenser, const struct worker *worker, unsigned *ret_one)
{
    unsigned behind = 0;
    for (unsigned i = 0; i < DISPENSER_WORKERS_MAX; i++) {
        if (!dispenser->workers[i].live || dispenser->workers[i].clock >= worker->clock - dispenser->options.staleness)
            continue;
        *ret_one = i;
        behind++;
    }
    return behind;
}

static unsigned count_overtaken(const struct dispenser *dispenser)
{
    unsigned overtaken = 0;
    for (unsigned i = 0; i < DISPENSER_WORKERS_MAX; i++)
        overtaken += dispenser->workers[i].overtaken;
    return overtaken;
}

/* Does nothing for a ticket requested in advance: workers behind may catch up while the one before
 * it is computed. Nor if the worker would still have to wait for another. */
bool dispenser_overtake(struct dispenser *dispenser, unsigned number, unsigned *ret_overtaken)
{
    const struct worker *worker = &dispenser->workers[number];
    if (dispenser->options.mode != PARAMETER_SERVER_BOUNDED_STALENESS || dispenser->options.backup_workers == 0 ||
        !worker->live || worker->held > 0)
        return false;
    unsigned behind = count_behind(dispenser, worker, ret_overtaken);
    if (behind == 0 || behind + count_overtaken(dispenser) > dispenser->options.backup_workers)
        return false;
    dispenser_leave(dispenser, *ret_overtaken);
    dispenser->workers[*ret_overtaken].overtaken = true;
    return true;
}

bool dispenser_is_overtaken(const struct dispenser *dispenser, unsigned worker)
{
    return dispenser->workers[worker].overtaken;
}

static int64_t ticket_limit(const struct dispenser *dispenser)
{
    const struct dispenser_options *options = &dispenser->options;
    int64_t limit = is_synchronous(dispenser)
                        ? (dispenser->step + 1) * options->tickets_per_step
                        : dispenser->finished.low + (options->most_ahead > 0 ? options->most_ahead : MOST_AHEAD);
    return limit < options->end ? limit : options->end;
}

static bool take_returned(struct dispenser *dispenser, int64_t ticket)
{
    for (unsigned i = 0; i < dispenser->returned_count; i++)
        if (dispenser->returned[i] == ticket) {
            remove_returned(dispenser, i);
            return true;
        }
    return false;
}

/* The worker may have read this share's examples while the step before was still running. */
static bool take_the_same_share(struct dispenser *dispenser, const struct worker *worker, int64_t *ret_ticket)
{
    int64_t ticket = dispenser->step * dispenser->options.tickets_per_step + worker->had - 1;
    if (!is_synchronous(dispenser) || worker->had == 0)
        return false;
    *ret_ticket = ticket;
    if (take_returned(dispenser, ticket))
        return true;
    if (ticket < dispenser->next || ticket >= ticket_limit(dispenser) || ticket_set_has(&dispenser->finished, ticket))
        return false;
    while (dispenser->next < ticket)
        put_back(dispenser, dispenser->next++);
    dispenser->next++;
    return true;
}

static bool take_free(struct dispenser *dispenser, const struct worker *worker, int64_t *ret_ticket)
{
    if (take_the_same_share(dispenser, worker, ret_ticket))
        return true;
    if (dispenser->returned_count > 0) {
        *ret_ticket = dispenser->returned[0];
        remove_returned(dispenser, 0);
        return true;
    }
    while (dispenser->next < ticket_limit(dispenser) && ticket_set_has(&dispenser->finished, dispenser->next))
        dispenser->next++;
    if (dispenser->next >= ticket_limit(dispenser))
        return false;
    *ret_ticket = dispenser->next++;
    return true;
}

/* Returns how long the last worker to take a ticket has held it, and finds the worker that has held it longest; -1: no worker holds it. */
static int64_t held_ns(const struct dispenser *dispenser, unsigned but, int64_t ticket, int64_t now_ns,
                       unsigned *ret_first, int64_t *ret_longest_ns)
{
    int64_t shortest_ns = -1, longest_ns = -1;
    for (unsigned i = 0; i < DISPENSER_WORKERS_MAX; i++) {
        const struct worker *worker = &dispenser->workers[i];
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
static bool take_overdue(const struct dispenser *dispenser, unsigned taker, int64_t now_ns, int64_t *ret_ticket)
{
    const struct worker *worker = &dispenser->workers[taker];
    int64_t low = dispenser->finished.low, longest_ns;
    int64_t overdue_ns = dispenser->options.overdue_ns > 0 ? dispenser->options.overdue_ns : OVERDUE_NS;
    bool is_far = dispenser->next - low >= ROUNDS * HOLDINGS_MAX * (int64_t)dispenser_live(dispenser);
    unsigned first;
    if (!is_far && dispenser->next < ticket_limit(dispenser))
        return false;
    for (unsigned i = 0; i < worker->held; i++)
        if (worker->holds[i] == low)
            return false;
    *ret_ticket = low;
    return held_ns(dispenser, taker, low, now_ns, &first, &longest_ns) >= overdue_ns;
}

bool dispenser_is_overdue(const struct dispenser *dispenser, unsigned taker, int64_t ticket, int64_t now_ns,
                          unsigned *ret_holder, int64_t *ret_ns)
{
    return dispenser->options.mode == PARAMETER_SERVER_ASYNC && ticket == dispenser->finished.low &&
           held_ns(dispenser, taker, ticket, now_ns, ret_holder, ret_ns) >= 0;
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
static bool take_double(struct dispenser *dispenser, unsigned taker, int64_t now_ns, int64_t *ret_ticket)
{
    const struct worker *slowest = NULL;
    int64_t since = 0;
    unsigned doubled = 0;
    for (unsigned i = 0; i < DISPENSER_WORKERS_MAX; i++) {
        const struct worker *worker = &dispenser->workers[i];
        unsigned other;
        if (!worker->live || worker->held == 0 || i == taker || ticket_set_has(&dispenser->finished, worker->holds[0]))
            continue;
        if (count_holders(dispenser, worker->holds[0], &other) > 1)
            doubled++;
        else if (slowest == NULL || is_slower(worker, worker->since_ns[0], slowest, since)) {
            slowest = worker;
            since = worker->since_ns[0];
        }
    }
    if (slowest == NULL || doubled / 2 >= dispenser->options.backup_workers ||
        !helps(&dispenser->workers[taker], slowest, since, now_ns))
        return false;
    *ret_ticket = slowest->holds[0];
    return true;
}

bool dispenser_take(struct dispenser *dispenser, unsigned number, int64_t now_ns, int64_t *ret_ticket)
{
    struct worker *worker = &dispenser->workers[number];
    int64_t ticket;
    if (!worker->live || !is_allowed(dispenser, worker))
        return false;
    bool found =
        (dispenser->options.mode == PARAMETER_SERVER_ASYNC && take_overdue(dispenser, number, now_ns, &ticket)) ||
        take_free(dispenser, worker, &ticket);
    if (!found && is_synchronous(dispenser) && dispenser->options.backup_workers > 0)
        found = take_double(dispenser, number, now_ns, &ticket);
    if (!found)
        return false;
    dispenser_note_furthest(dispenser, worker->clock + worker->held);
    hold(worker, ticket, now_ns);
    worker->had = ticket % dispenser->options.tickets_per_step + 1;
    dispenser->begun = true;
    *ret_ticket = ticket;
    return true;
}

static void measure(struct worker *worker, int64_t duration_ns)
{
    double weight = worker->mean_ns == 0 ? 1.0 : 0.3;
    worker->mean_ns += weight * ((double)duration_ns - worker->mean_ns);
}

bool dispenser_done(struct dispenser *dispenser, unsigned number, int64_t ticket, int64_t now_ns, int64_t *ret_ns)
{
    struct worker *worker = &dispenser->workers[number];
    int64_t since_ns;
    *ret_ns = -1;
    if (worker->live && drop(worker, ticket, &since_ns)) {
        worker->clock++;
        *ret_ns = now_ns - since_ns;
        measure(worker, *ret_ns);
    }
    (void)take_returned(dispenser, ticket);
    return ticket_set_add(&dispenser->finished, ticket);
}

/* ---------------------------------------------------------------- steps */

int64_t dispenser_step(const struct dispenser *dispenser)
{
    return dispenser->step;
}

bool dispenser_step_is_complete(const struct dispenser *dispenser)
{
    return dispenser->step * dispenser->options.tickets_per_step < dispenser->options.end &&
           dispenser->finished.low >= ticket_limit(dispenser);
}

void dispenser_advance(struct dispenser *dispenser)
{
    dispenser->step++;
}

void dispenser_rollback(struct dispenser *dispenser, const struct ticket_set *finished, int64_t step)
{
    ticket_set_copy(&dispenser->finished, finished);
    dispenser->next = finished->low;
    dispenser->returned_count = 0;
    dispenser->step = step;
    for (unsigned i = 0; i < DISPENSER_WORKERS_MAX; i++)
        dispenser->workers[i].held = 0;
}

void dispenser_set_end(struct dispenser *dispenser, int64_t end)
{
    dispenser->options.end = end;
}

void dispenser_reset_clocks(struct dispenser *dispenser)
{
    dispenser->begun = false;
    dispenser->furthest = 0;
    for (unsigned i = 0; i < DISPENSER_WORKERS_MAX; i++)
        dispenser->workers[i].clock = 0;
}

/* ---------------------------------------------------------------- looking on */

const struct ticket_set *dispenser_finished(const struct dispenser *dispenser)
{
    return &dispenser->finished;
}

bool dispenser_is_over(const struct dispenser *dispenser)
{
    if (is_synchronous(dispenser))
        return dispenser->step * dispenser->options.tickets_per_step >= dispenser->options.end;
    return dispenser->finished.low >= dispenser->options.end;
}

bool dispenser_is_late(const struct dispenser *dispenser, unsigned number, int64_t now_ns, int64_t *ret_ns)
{
    const struct worker *worker = &dispenser->workers[number];
    if (!worker->live || worker->held == 0 || !ticket_set_has(&dispenser->finished, worker->holds[0]))
        return false;
    *ret_ns = now_ns - worker->since_ns[0];
    return true;
}

bool dispenser_slowest(const struct dispenser *dispenser, int64_t now_ns, unsigned *ret_worker, int64_t *ret_ns)
{
    int64_t longest = -1;
    for (unsigned i = 0; i < DISPENSER_WORKERS_MAX; i++) {
        const struct worker *worker = &dispenser->workers[i];
        if (!worker->live || worker->held == 0 || ticket_set_has(&dispenser->finished, worker->holds[0]) ||
            now_ns - worker->since_ns[0] <= longest)
            continue;
        longest = now_ns - worker->since_ns[0];
        *ret_worker = i;
    }
    *ret_ns = longest;
    return longest >= 0;
}
