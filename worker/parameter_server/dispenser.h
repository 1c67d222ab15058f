/* SPDX-License-Identifier: Apache-2.0
 *
 * The chief's mind about batches: which ticket goes to which worker, and when.
 * A state machine without clock, sockets or threads.
 *
 * Ticket t stands for share t % T of batch t / T, where T is the number of
 * tickets in a step. Each ticket is finished once. Rules:
 *
 * - A worker that is gone leaves the clock, and its tickets go to others. What it
 *   had sent before counts; the successor's repetition does not.
 * - Asynchronous: the lowest ticket that nobody holds, at once, but none further than `most_ahead` from the lowest that is not
 *   finished: tables of tickets are to stay small. That one goes to another worker, too, when those who hold it have had it for
 *   long, and the others have gone round many times since, or have nothing else to do: a worker may stand in the reading of its
 *   data for ever. Whoever is first counts.
 * - Bounded staleness (Ho et al. 2013): a worker's clock is the number of tickets
 *   it has finished since it came (it starts with the slowest one's, and brings along what it has when only its connection
 *   or the chief was gone). It may begin
 *   its next only while it is at most `staleness` ahead of the slowest live one. So nobody computes what another has; else as above.
 *   Nobody starts further behind than `staleness` below the highest clock at which anybody has begun a ticket, though all
 *   others be gone: the slowest was there then, and whoever comes back would stand until a new one has caught up.
 *   With b backup workers nobody waits for the b slowest: whoever would leaves them behind, and they leave the clock until they have
 *   ended what they compute, which goes to others. Servers refuse what is then too late (variables.h).
 * - Synchronous: only tickets of the present step; the next begins when the chief
 *   says that this one was applied. Whoever asks is given the share that it had before, where nobody has taken that, for it may have
 *   read its examples; else the lowest. With b backup workers the batch is cut for the
 *   N others; one that finds all shares taken computes the share of the slowest
 *   holder too, unless it would come much later. So N + b compute, and of what they
 *   answer the first N that are different shares count (Chen et al. 2016); a late
 *   one is dropped. The same share, not another: no example is left out.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_DISPENSER_H
#define COXSWAIN_PARAMETER_SERVER_DISPENSER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/job/job_document.h"
#include "worker/parameter_server/ticket_set.h"

#define DISPENSER_WORKERS_MAX 1024

struct dispenser_options {
    enum parameter_server_mode mode;
    int64_t tickets_per_step;
    int64_t staleness;
    unsigned backup_workers;
    int64_t end;        /* tickets 0 .. end - 1 make the run */
    int64_t most_ahead; /* 0: 32768 */
    int64_t overdue_ns; /* 0: 30 s */
};

struct dispenser;

/* `finished`: what a checkpoint, or the servers, say is done; copied. `step`: as for
 * dispenser_rollback. */
struct dispenser *dispenser_new(const struct dispenser_options *options, const struct ticket_set *finished,
                                int64_t step);
void dispenser_free(struct dispenser *dispenser);

/* A worker's process is there for the first time. It holds nothing. */
void dispenser_join(struct dispenser *dispenser, unsigned worker);
/* One that had this clock is there again, and holds nothing but `ticket` (-1: nothing), which it computes: that stays its own, and
 * true is returned, unless it was gone for others meanwhile. Then it is not behind the slowest. */
bool dispenser_rejoin(struct dispenser *dispenser, unsigned worker, int64_t clock, int64_t ticket);
/* What it says itself; whether that is more. */
bool dispenser_note_clock(struct dispenser *dispenser, unsigned worker, int64_t clock);
/* What the servers know: somebody has begun a ticket at that clock. */
void dispenser_note_furthest(struct dispenser *dispenser, int64_t clock);
int64_t dispenser_furthest(const struct dispenser *dispenser);
int64_t dispenser_clock(const struct dispenser *dispenser, unsigned worker);
void dispenser_leave(struct dispenser *dispenser, unsigned worker);
bool dispenser_is_there(const struct dispenser *dispenser, unsigned worker);
unsigned dispenser_live(const struct dispenser *dispenser);

/* The next ticket for a worker that is there; false when it has to wait (or all is done). */
bool dispenser_take(struct dispenser *dispenser, unsigned worker, int64_t now_ns, int64_t *ret_ticket);
/* Bounded staleness with backup workers: has one of those for whom `worker`, which holds nothing, would wait leave the clock, where
 * there are no more of them than spare ones. That one is overtaken until it joins again, or is gone. False: nobody is to leave, any
 * more. */
bool dispenser_overtake(struct dispenser *dispenser, unsigned worker, unsigned *ret_overtaken);
bool dispenser_is_overtaken(const struct dispenser *dispenser, unsigned worker);
/* Asynchronous: of a ticket that was just given to a worker, who else has it, and for how long; false when nobody. */
bool dispenser_is_overdue(const struct dispenser *dispenser, unsigned taker, int64_t ticket, int64_t now_ns,
                          unsigned *ret_holder, int64_t *ret_ns);
/* Every server has acknowledged it. False when the ticket was finished already. *ret_ns: how long this worker has had it; -1: it
 * did not. */
bool dispenser_done(struct dispenser *dispenser, unsigned worker, int64_t ticket, int64_t now_ns, int64_t *ret_ns);

/* Synchronous: the step that runs, from 0; whether all its shares are finished; and the word that it was applied. */
int64_t dispenser_step(const struct dispenser *dispenser);
bool dispenser_step_is_complete(const struct dispenser *dispenser);
void dispenser_advance(struct dispenser *dispenser);

/* Back to what a snapshot or the servers hold: whatever is out is forgotten. `step`: Synchronous, the first not applied. */
void dispenser_rollback(struct dispenser *dispenser, const struct ticket_set *finished, int64_t step);
/* The run has tickets 0 to end - 1 from now on. */
void dispenser_set_end(struct dispenser *dispenser, int64_t end);
/* What workers have finished is void: all are as far as each other. */
void dispenser_reset_clocks(struct dispenser *dispenser);

const struct ticket_set *dispenser_finished(const struct dispenser *dispenser);
bool dispenser_is_over(const struct dispenser *dispenser);

/* Synchronous: whether a worker still computes a share that another has finished, and for how long it has. */
bool dispenser_is_late(const struct dispenser *dispenser, unsigned worker, int64_t now_ns, int64_t *ret_ns);
/* Who has had a ticket for longest that nobody has finished, and for how long; false when nobody has any. Synchronous: the step waits
 * for that worker. */
bool dispenser_slowest(const struct dispenser *dispenser, int64_t now_ns, unsigned *ret_worker, int64_t *ret_ns);

#endif
