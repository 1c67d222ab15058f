/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which ticket goes to which worker of a parameter-server crew, and when. The chief's dispatcher uses it. It is
 * a state machine without clock, sockets or threads.
 *
 * Ticket t stands for share t % T of batch t / T, where T is the number of tickets in a step. A worker holds a ticket
 * from when it is given until it reports it as done. Each ticket is finished once. A worker's clock is the number of
 * tickets that it has finished since it joined (see Bounded staleness). Rules:
 *
 * - A worker that is gone does not count for the clock, and its tickets go to others. What it had
 *   sent before counts; a repetition by the worker that takes over does not.
 *
 * - Asynchronous: a worker gets the lowest ticket that nobody holds, at once, but none that is
 *   `most_ahead` or more above the lowest unfinished one, so that ticket tables stay small. That lowest
 *   unfinished ticket also goes to another worker if its holders have had it for long and the
 *   others have done many rounds since, or have nothing else to do: a worker may hang forever
 *   reading its data. The first to finish it counts.
 *
 * - Bounded staleness (Ho et al. 2013): a worker's clock is the number of tickets it has finished
 *   since it joined. It starts with the slowest worker's clock, and keeps its own if only its
 *   connection or the chief was lost. A worker may begin its next ticket only while it is at most
 *   `staleness` ahead of the slowest live worker. No ticket is given to two workers; otherwise the
 *   rules are those of Asynchronous. No worker starts further than `staleness` below the highest
 *   clock at which any ticket was begun, even if all others are gone: the slowest worker had
 *   reached that, and returning workers would otherwise wait for the new one to catch up. With b
 *   backup workers, nobody waits for the b slowest: a worker that would have to wait overtakes
 *   them. An overtaken worker does not count for the clock until it has finished what it computes,
 *   which goes to others. Servers refuse its update if it is too late (variables.h).
 *
 * - Synchronous: only tickets of the present step are handed out; the next step begins when the
 *   chief reports that this one was applied. A worker gets the share that it had in the step before
 *   if nobody has taken that, since it may have read its examples already; else the lowest. With b
 *   backup workers, the batch is cut for the other N. A worker that finds all shares taken computes
 *   the slowest holder's share too, unless it would finish much later. So N + b workers compute,
 *   and the first N answers with different shares count (Chen et al. 2016); later ones are dropped.
 *   Since it is the same share, no example is left out.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_TICKET_SCHEDULER_H
#define COXSWAIN_PARAMETER_SERVER_TICKET_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/job/job_document.h"
#include "worker/parameter_server/ticket_set.h"

#define TICKET_SCHEDULER_WORKERS_MAX 1024

struct ticket_scheduler_options {
    enum parameter_server_mode mode;
    int64_t tickets_per_step;
    int64_t staleness;
    unsigned backup_workers;
    int64_t end;        /* tickets 0 .. end - 1 make the run */
    int64_t most_ahead; /* see Asynchronous above; not used if Synchronous; 0: 32768 */
    int64_t overdue_ns; /* a ticket that is held for longer may also be given to another worker; 0: 30 s */
};

struct ticket_scheduler;

/* Creates a ticket scheduler. `finished` are the tickets that a checkpoint or the servers say are done; it
 * is copied. `step`: as in ticket_scheduler_rollback. */
struct ticket_scheduler *ticket_scheduler_new(const struct ticket_scheduler_options *options,
                                              const struct ticket_set *finished, int64_t step);
void ticket_scheduler_free(struct ticket_scheduler *scheduler);

/* Adds a worker whose process is new. It holds nothing. */
void ticket_scheduler_join(struct ticket_scheduler *scheduler, unsigned worker);
/* Adds a worker that was connected before. It had this clock and still computes `ticket` (-1: none). If the other
 * workers have meanwhile finished more, it gets the slowest worker's clock. Returns whether it keeps the ticket;
 * false if the ticket was given to another worker. */
bool ticket_scheduler_rejoin(struct ticket_scheduler *scheduler, unsigned worker, int64_t clock, int64_t ticket);
/* Raises a worker's clock to the one that it reports. Returns whether that was higher. */
bool ticket_scheduler_note_clock(struct ticket_scheduler *scheduler, unsigned worker, int64_t clock);
/* Records that some worker has begun a ticket at that clock, as a server has reported to a new chief. */
void ticket_scheduler_note_furthest(struct ticket_scheduler *scheduler, int64_t clock);
/* Returns the highest clock at which any worker has begun a ticket. */
int64_t ticket_scheduler_furthest(const struct ticket_scheduler *scheduler);
/* Returns a worker's clock. */
int64_t ticket_scheduler_clock(const struct ticket_scheduler *scheduler, unsigned worker);
void ticket_scheduler_leave(struct ticket_scheduler *scheduler, unsigned worker);
/* Returns whether the worker has joined and not left. */
bool ticket_scheduler_is_there(const struct ticket_scheduler *scheduler, unsigned worker);
/* Returns how many workers have joined and not left. */
unsigned ticket_scheduler_live(const struct ticket_scheduler *scheduler);

/* Takes the next ticket for a worker that has joined. Returns false if it has to wait, or all
 * tickets are done. */
bool ticket_scheduler_take(struct ticket_scheduler *scheduler, unsigned worker, int64_t now_ns, int64_t *ret_ticket);
/* Bounded staleness with backup workers: if `worker`, which holds no ticket, would have to wait for others, and
 * these are at most as many as the backup workers, marks one of them as overtaken, so that it no longer counts
 * for the clock. Returns false if no worker is to be marked. */
bool ticket_scheduler_overtake(struct ticket_scheduler *scheduler, unsigned worker, unsigned *ret_overtaken);
bool ticket_scheduler_is_overtaken(const struct ticket_scheduler *scheduler, unsigned worker);
/* Asynchronous: finds who else holds a ticket that was just given to a worker, and for how long.
 * Returns false if nobody does. */
bool ticket_scheduler_is_overdue(const struct ticket_scheduler *scheduler, unsigned taker, int64_t ticket,
                                 int64_t now_ns, unsigned *ret_holder, int64_t *ret_ns);
/* Marks a ticket as finished, after every server has acknowledged it. Returns false if it was
 * finished already. *ret_ns: how long this worker has held it; -1: it did not. */
bool ticket_scheduler_done(struct ticket_scheduler *scheduler, unsigned worker, int64_t ticket, int64_t now_ns,
                           int64_t *ret_ns);

/* Synchronous: return the present step, from 0, and whether all its shares are finished;
 * ticket_scheduler_advance begins the next step and is called once this one was applied. */
int64_t ticket_scheduler_step(const struct ticket_scheduler *scheduler);
bool ticket_scheduler_step_is_complete(const struct ticket_scheduler *scheduler);
void ticket_scheduler_advance(struct ticket_scheduler *scheduler);

/* Rolls back to a state in which the tickets `finished` are finished, as a checkpoint or the servers say; no
 * ticket is held then. `step`: in mode Synchronous, the first step that is not applied. */
void ticket_scheduler_rollback(struct ticket_scheduler *scheduler, const struct ticket_set *finished, int64_t step);
/* Sets the run's end: it has tickets 0 to end - 1. */
void ticket_scheduler_set_end(struct ticket_scheduler *scheduler, int64_t end);
/* Resets all clocks to 0. */
void ticket_scheduler_reset_clocks(struct ticket_scheduler *scheduler);

const struct ticket_set *ticket_scheduler_finished(const struct ticket_scheduler *scheduler);
bool ticket_scheduler_is_over(const struct ticket_scheduler *scheduler);

/* Synchronous: returns whether a worker still computes a share that another has finished, and how
 * long it has held it. */
bool ticket_scheduler_is_late(const struct ticket_scheduler *scheduler, unsigned worker, int64_t now_ns,
                              int64_t *ret_ns);
/* Finds the worker that has held an unfinished ticket for longest, and how long. Returns false if
 * nobody holds one. In mode Synchronous the step waits for that worker. */
bool ticket_scheduler_slowest(const struct ticket_scheduler *scheduler, int64_t now_ns, unsigned *ret_worker,
                              int64_t *ret_ns);

#endif
