/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/ticket_scheduler.h"

#include <criterion/criterion.h>

static struct ticket_scheduler *make(enum parameter_server_mode mode, int64_t per_step, int64_t end, int64_t staleness,
                                     unsigned backups)
{
    const struct ticket_set none = {0};
    return ticket_scheduler_new(
        &(struct ticket_scheduler_options){
            .mode = mode, .tickets_per_step = per_step, .staleness = staleness, .backup_workers = backups, .end = end},
        &none, 0);
}

static void join_all(struct ticket_scheduler *scheduler, unsigned workers)
{
    for (unsigned worker = 0; worker < workers; worker++)
        ticket_scheduler_join(scheduler, worker);
}

static int64_t take(struct ticket_scheduler *scheduler, unsigned worker, int64_t now)
{
    int64_t ticket = -1;
    return ticket_scheduler_take(scheduler, worker, now, &ticket) ? ticket : -1;
}

static bool done(struct ticket_scheduler *scheduler, unsigned worker, int64_t ticket, int64_t now)
{
    int64_t ns;
    return ticket_scheduler_done(scheduler, worker, ticket, now, &ns);
}

Test(ticket_scheduler, a_lost_workers_tickets_go_to_others_once)
{
    struct ticket_scheduler *scheduler = make(PARAMETER_SERVER_ASYNC, 2, 6, 0, 0);
    join_all(scheduler, 2);
    cr_expect(take(scheduler, 0, 0) == 0 && take(scheduler, 1, 0) == 1 && take(scheduler, 1, 0) == 2);
    cr_expect(take(scheduler, 1, 0) == -1, "two at a time are enough");
    ticket_scheduler_leave(scheduler, 1);
    cr_expect(take(scheduler, 1, 0) == -1);
    cr_expect(done(scheduler, 0, 0, 1) && take(scheduler, 0, 1) == 1 && take(scheduler, 0, 1) == 2);
    /* Its late word for 2 counts, and makes the repetition a duplicate. */
    cr_expect(done(scheduler, 1, 2, 1));
    cr_expect(!done(scheduler, 0, 2, 2) && done(scheduler, 0, 1, 2));
    for (int64_t ticket = 3; ticket < 6; ticket++) {
        cr_expect(take(scheduler, 0, 3) == ticket && !ticket_scheduler_is_over(scheduler));
        done(scheduler, 0, ticket, 4);
    }
    cr_expect(take(scheduler, 0, 5) == -1 && ticket_scheduler_is_over(scheduler));
    ticket_scheduler_free(scheduler);
}

Test(ticket_scheduler, nobody_runs_further_ahead_than_the_bound)
{
    struct ticket_scheduler *scheduler = make(PARAMETER_SERVER_BOUNDED_STALENESS, 2, 100, 2, 0);
    join_all(scheduler, 2);
    for (int64_t clock = 0; clock <= 2; clock++) {
        int64_t ticket = take(scheduler, 0, 0);
        cr_assert(ticket >= 0);
        done(scheduler, 0, ticket, 0);
    }
    cr_expect(take(scheduler, 0, 0) == -1, "3 ahead of a worker that has finished none");
    int64_t slow = take(scheduler, 1, 0);
    done(scheduler, 1, slow, 0);
    cr_expect(take(scheduler, 0, 0) >= 0);
    cr_expect(take(scheduler, 0, 0) == -1);
    ticket_scheduler_leave(scheduler, 1); /* the dead leave the clock */
    cr_expect(take(scheduler, 0, 0) >= 0);
    ticket_scheduler_join(scheduler, 1); /* and come back to where the slowest is */
    cr_expect(take(scheduler, 1, 0) >= 0);
    ticket_scheduler_free(scheduler);
}

Test(ticket_scheduler, workers_do_not_wait_for_as_many_slow_ones_as_are_spare)
{
    struct ticket_scheduler *scheduler = make(PARAMETER_SERVER_BOUNDED_STALENESS, 2, 100, 2, 1);
    unsigned slow = 9;
    join_all(scheduler, 3);
    cr_expect(take(scheduler, 2, 0) == 0 && take(scheduler, 2, 0) == 1);
    for (int64_t ticket = 2; ticket < 5; ticket++)
        cr_expect(take(scheduler, 0, 0) == ticket && done(scheduler, 0, ticket, 0));
    cr_expect(!ticket_scheduler_overtake(scheduler, 0, &slow) && take(scheduler, 0, 0) == -1, "two are too far behind");
    for (int64_t ticket = 5; ticket < 8; ticket++)
        cr_expect(take(scheduler, 1, 0) == ticket && done(scheduler, 1, ticket, 0));
    cr_expect(take(scheduler, 0, 0) == -1 && ticket_scheduler_overtake(scheduler, 0, &slow) && slow == 2);
    cr_expect(!ticket_scheduler_overtake(scheduler, 0, &slow) && ticket_scheduler_is_overtaken(scheduler, 2));
    cr_expect(take(scheduler, 0, 0) == 0 && take(scheduler, 1, 0) == 1 && take(scheduler, 2, 0) == -1);
    /* A ticket that the slow worker finishes in time counts. */
    cr_expect(done(scheduler, 2, 0, 0) && !done(scheduler, 0, 0, 0) && done(scheduler, 1, 1, 0));
    ticket_scheduler_join(scheduler, 2);
    cr_expect(ticket_scheduler_clock(scheduler, 2) == 4 && !ticket_scheduler_is_overtaken(scheduler, 2));
    cr_expect(take(scheduler, 2, 0) == 8);
    ticket_scheduler_free(scheduler);
}

/* One that was overtaken and has died is no longer among those that are spare. */
Test(ticket_scheduler, a_worker_that_was_overtaken_and_is_gone_makes_room_for_another)
{
    struct ticket_scheduler *scheduler = make(PARAMETER_SERVER_BOUNDED_STALENESS, 2, 100, 0, 1);
    unsigned slow = 9;
    join_all(scheduler, 3);
    cr_expect(take(scheduler, 1, 0) == 0 && take(scheduler, 0, 0) == 1 && done(scheduler, 0, 1, 0));
    cr_expect(take(scheduler, 2, 0) == 2 && done(scheduler, 2, 2, 0));
    cr_expect(ticket_scheduler_overtake(scheduler, 0, &slow) && slow == 1);
    cr_expect(take(scheduler, 0, 0) == 0 && done(scheduler, 0, 0, 0) && take(scheduler, 2, 0) == 3);
    cr_expect(!ticket_scheduler_overtake(scheduler, 0, &slow));
    ticket_scheduler_leave(scheduler, 1);
    cr_expect(ticket_scheduler_overtake(scheduler, 0, &slow) && slow == 2);
    ticket_scheduler_free(scheduler);
}

/* Nobody gains a step by a connection that breaks, nor by a chief that dies. */
Test(ticket_scheduler, a_worker_brings_its_clock_along)
{
    struct ticket_scheduler *scheduler = make(PARAMETER_SERVER_BOUNDED_STALENESS, 2, 100, 2, 0);
    join_all(scheduler, 2);
    cr_expect(take(scheduler, 1, 0) == 0);
    for (int64_t ticket = 1; ticket <= 3; ticket++)
        cr_expect(take(scheduler, 0, 0) == ticket && done(scheduler, 0, ticket, 0));
    cr_expect(take(scheduler, 0, 0) == -1);
    for (int i = 0; i < 3; i++) {
        ticket_scheduler_rejoin(scheduler, 1, 0, -1);
        cr_expect(take(scheduler, 0, 0) == -1, "the slow one is in the same share");
    }
    ticket_scheduler_free(scheduler);

    scheduler = make(PARAMETER_SERVER_BOUNDED_STALENESS, 2, 100, 2, 0); /* a chief's successor */
    ticket_scheduler_rejoin(scheduler, 0, 3, -1);
    ticket_scheduler_rejoin(scheduler, 1, 0, -1);
    cr_expect(take(scheduler, 0, 0) == -1 && take(scheduler, 1, 0) >= 0);
    ticket_scheduler_note_clock(scheduler, 1, 1); /* what it did while nobody led */
    cr_expect(take(scheduler, 0, 0) >= 0 && take(scheduler, 0, 0) == -1);
    ticket_scheduler_leave(scheduler, 1); /* a worker that the others took for gone need not be waited for */
    ticket_scheduler_rejoin(scheduler, 1, 1, -1);
    cr_expect(ticket_scheduler_clock(scheduler, 1) == 3);
    ticket_scheduler_free(scheduler);
}

/* A worker goes on computing while its connection is broken. */
Test(ticket_scheduler, nobody_is_given_what_a_worker_that_comes_back_still_computes)
{
    struct ticket_scheduler *scheduler = make(PARAMETER_SERVER_BOUNDED_STALENESS, 2, 100, 2, 0);
    join_all(scheduler, 2);
    cr_expect(take(scheduler, 1, 5) == 0 && take(scheduler, 1, 5) == 1);
    cr_expect(ticket_scheduler_rejoin(scheduler, 1, 0, 0));
    cr_expect(take(scheduler, 0, 6) == 1 && take(scheduler, 0, 6) == 2, "what it had not begun is free");
    int64_t ns;
    cr_expect(ticket_scheduler_done(scheduler, 1, 0, 9, &ns) && ns == 4 && ticket_scheduler_clock(scheduler, 1) == 1);
    cr_expect(take(scheduler, 1, 9) == 3);
    ticket_scheduler_leave(scheduler, 1);
    cr_expect(!ticket_scheduler_rejoin(scheduler, 1, 1, 3) && done(scheduler, 0, 1, 9) && take(scheduler, 0, 9) == 3);
    ticket_scheduler_free(scheduler);
}

/* A worker that joins before all others, or returns after a long time, would otherwise make the rest wait until it has caught up. */
Test(ticket_scheduler, nobody_starts_further_behind_than_the_bound)
{
    struct ticket_scheduler *scheduler = make(PARAMETER_SERVER_BOUNDED_STALENESS, 2, 200, 2, 0);
    ticket_scheduler_note_furthest(scheduler, 50); /* a chief's successor */
    ticket_scheduler_join(scheduler, 2);
    cr_expect(ticket_scheduler_clock(scheduler, 2) == 48);
    ticket_scheduler_rejoin(scheduler, 0, 51, -1);
    cr_expect(take(scheduler, 2, 0) == 0 && take(scheduler, 0, 0) == -1);
    cr_expect(done(scheduler, 2, 0, 0) && take(scheduler, 0, 0) == 1);
    ticket_scheduler_free(scheduler);

    scheduler = make(PARAMETER_SERVER_BOUNDED_STALENESS, 2, 200, 2, 0);
    ticket_scheduler_note_furthest(scheduler, 50);
    ticket_scheduler_rejoin(scheduler, 1, 10, -1); /* it was taken for lost by the chief before */
    cr_expect(ticket_scheduler_clock(scheduler, 1) == 48);
    ticket_scheduler_rejoin(scheduler, 0, 50, -1);
    cr_expect(ticket_scheduler_clock(scheduler, 0) == 50 && take(scheduler, 0, 0) == 0);
    cr_expect(done(scheduler, 0, 0, 0));
    ticket_scheduler_leave(scheduler, 0);
    ticket_scheduler_leave(scheduler, 1);
    ticket_scheduler_join(scheduler, 2); /* nobody is there, but may come back */
    cr_expect(ticket_scheduler_clock(scheduler, 2) == 48);
    ticket_scheduler_reset_clocks(scheduler);
    cr_expect(ticket_scheduler_clock(scheduler, 2) == 0 && ticket_scheduler_furthest(scheduler) == 0);
    ticket_scheduler_free(scheduler);
}

Test(ticket_scheduler, a_synchronous_step_ends_before_the_next_begins)
{
    struct ticket_scheduler *scheduler = make(PARAMETER_SERVER_SYNCHRONOUS, 2, 4, 0, 0);
    join_all(scheduler, 2);
    cr_expect(take(scheduler, 1, 0) == 0 && take(scheduler, 0, 0) == 1);
    cr_expect(done(scheduler, 0, 1, 1) && take(scheduler, 0, 1) == -1);
    cr_expect(!ticket_scheduler_step_is_complete(scheduler));
    cr_expect(done(scheduler, 1, 0, 1) && ticket_scheduler_step_is_complete(scheduler));
    cr_expect(take(scheduler, 0, 1) == -1);
    ticket_scheduler_advance(scheduler);
    cr_expect(!ticket_scheduler_step_is_complete(scheduler) && take(scheduler, 0, 1) == 3);
    done(scheduler, 0, 3, 2);
    cr_expect(take(scheduler, 0, 2) == 2);
    done(scheduler, 0, 2, 2);
    cr_expect(!ticket_scheduler_is_over(scheduler));
    ticket_scheduler_advance(scheduler);
    cr_expect(ticket_scheduler_is_over(scheduler));
    ticket_scheduler_free(scheduler);
}

/* The order in which workers come to a step does not matter, nor that others have gone or joined. */
Test(ticket_scheduler, a_synchronous_worker_is_given_the_share_that_it_had_where_that_is_free)
{
    struct ticket_scheduler *scheduler = make(PARAMETER_SERVER_SYNCHRONOUS, 3, 12, 0, 0);
    for (unsigned worker = 0; worker < 3; worker++) {
        ticket_scheduler_join(scheduler, worker);
        cr_expect(take(scheduler, worker, 0) == worker && done(scheduler, worker, worker, 0));
    }
    ticket_scheduler_advance(scheduler);
    cr_expect(take(scheduler, 2, 0) == 5 && take(scheduler, 0, 0) == 3 && take(scheduler, 1, 0) == 4);
    ticket_scheduler_leave(scheduler, 0);
    cr_expect(done(scheduler, 2, 5, 0) && take(scheduler, 2, 0) == 3 && done(scheduler, 2, 3, 0));
    cr_expect(done(scheduler, 1, 4, 0));
    ticket_scheduler_advance(scheduler);
    ticket_scheduler_join(scheduler, 0);
    cr_expect(take(scheduler, 1, 0) == 7 && take(scheduler, 0, 0) == 6 && take(scheduler, 2, 0) == 8,
              "the first share is taken");
    for (unsigned worker = 0; worker < 3; worker++)
        cr_expect(done(scheduler, worker, (int64_t[]){6, 7, 8}[worker], 0));
    ticket_scheduler_advance(scheduler);
    cr_expect(take(scheduler, 2, 0) == 11 && take(scheduler, 1, 0) == 10 && take(scheduler, 0, 0) == 9);
    ticket_scheduler_free(scheduler);
}

Test(ticket_scheduler, a_backup_worker_doubles_the_slowest)
{
    struct ticket_scheduler *scheduler = make(PARAMETER_SERVER_SYNCHRONOUS, 2, 100, 0, 1);
    join_all(scheduler, 3);
    /* In the first step nobody is known; worker 1 turns out slow. */
    cr_expect(take(scheduler, 0, 0) == 0 && take(scheduler, 1, 0) == 1);
    done(scheduler, 0, 0, 10);
    cr_expect(take(scheduler, 2, 0) == 1 && take(scheduler, 0, 10) == -1);
    cr_expect(done(scheduler, 2, 1, 20));
    cr_expect(!done(scheduler, 1, 1, 100));
    ticket_scheduler_advance(scheduler);
    cr_expect(take(scheduler, 0, 100) == 2 && take(scheduler, 1, 100) == 3);
    cr_expect(take(scheduler, 2, 100) == 3, "the slow one's share, though the other was given out first");
    cr_expect(done(scheduler, 2, 3, 110) && done(scheduler, 0, 2, 110));
    ticket_scheduler_advance(scheduler);
    /* While it still computes what is over, the others have the step to themselves. */
    cr_expect(take(scheduler, 0, 110) == 4 && take(scheduler, 2, 110) == 5);
    cr_expect(!done(scheduler, 1, 3, 200));
    ticket_scheduler_free(scheduler);
}

Test(ticket_scheduler, rolls_back_to_a_snapshot)
{
    struct ticket_scheduler *scheduler = make(PARAMETER_SERVER_ASYNC, 2, 10, 0, 0);
    ticket_scheduler_join(scheduler, 0);
    for (int64_t ticket = 0; ticket < 5; ticket++)
        done(scheduler, 0, take(scheduler, 0, 0), 0);
    SCOPED(ticket_set_release) struct ticket_set snapshot = {0};
    ticket_set_reset(&snapshot, 2);
    ticket_set_add(&snapshot, 3);
    ticket_scheduler_rollback(scheduler, &snapshot, 0);
    cr_expect(take(scheduler, 0, 0) == 2);
    cr_expect(take(scheduler, 0, 0) == 4, "3 is in the snapshot");
    ticket_scheduler_free(scheduler);
}

/* ---------------------------------------------------------------- a worker that never comes to the end of a share */

static struct ticket_scheduler *make_with_two(int64_t end, int64_t most_ahead)
{
    const struct ticket_set none = {0};
    const struct ticket_scheduler_options options = {
        .mode = PARAMETER_SERVER_ASYNC, .tickets_per_step = 2, .end = end, .most_ahead = most_ahead, .overdue_ns = 100};
    struct ticket_scheduler *scheduler = ticket_scheduler_new(&options, &none, 0);
    join_all(scheduler, 2);
    return scheduler;
}

Test(ticket_scheduler, a_ticket_that_stands_goes_to_another_worker_too)
{
    struct ticket_scheduler *scheduler = make_with_two(1000, 0);
    unsigned holder;
    int64_t ns;
    cr_expect(take(scheduler, 1, 0) == 0);
    for (int64_t ticket = 1; ticket < 64; ticket++) {
        cr_expect(take(scheduler, 0, 99) == ticket && done(scheduler, 0, ticket, 99));
        cr_expect(!ticket_scheduler_is_overdue(scheduler, 0, ticket, 99, &holder, &ns));
    }
    cr_expect(take(scheduler, 0, 99) == 64, "it has not had it for so long");
    cr_expect(take(scheduler, 0, 100) == 0);
    cr_expect(ticket_scheduler_is_overdue(scheduler, 0, 0, 100, &holder, &ns) && holder == 1 && ns == 100);
    ticket_scheduler_join(scheduler, 2);
    cr_expect(take(scheduler, 2, 100) == 65, "two have it now");
    cr_expect(done(scheduler, 0, 0, 101) && !done(scheduler, 1, 0, 200), "whoever is first counts");
    cr_expect(take(scheduler, 1, 1000) == 66, "64 is not far behind");
    ticket_scheduler_free(scheduler);
}

/* A worker that is only slow keeps its ticket as long as the others have something to do. */
Test(ticket_scheduler, the_last_tickets_go_to_workers_that_have_nothing_else_to_do)
{
    struct ticket_scheduler *scheduler = make_with_two(4, 0);
    cr_expect(take(scheduler, 1, 0) == 0 && take(scheduler, 1, 0) == 1 && take(scheduler, 0, 0) == 2);
    cr_expect(done(scheduler, 0, 2, 500) && take(scheduler, 0, 500) == 3 && done(scheduler, 0, 3, 500));
    cr_expect(take(scheduler, 0, 500) == 0 && done(scheduler, 0, 0, 600));
    cr_expect(take(scheduler, 0, 600) == 1 && done(scheduler, 0, 1, 700) && ticket_scheduler_is_over(scheduler));
    ticket_scheduler_free(scheduler);
}

Test(ticket_scheduler, nobody_runs_further_ahead_than_a_table_may_tell)
{
    struct ticket_scheduler *scheduler = make_with_two(1000, 10);
    cr_expect(take(scheduler, 1, 0) == 0);
    for (int64_t ticket = 1; ticket < 10; ticket++)
        cr_expect(take(scheduler, 0, 1) == ticket && done(scheduler, 0, ticket, 1));
    cr_expect(take(scheduler, 0, 1) == -1 && ticket_scheduler_finished(scheduler)->above_count == 9);
    cr_expect(take(scheduler, 0, 100) == 0 && done(scheduler, 0, 0, 101));
    cr_expect(take(scheduler, 0, 101) == 10);
    ticket_scheduler_free(scheduler);
}

/* ---------------------------------------------------------------- backup workers, in a time of the test's own */

#define SHARES 4
#define SPARE 1
#define CREW (SHARES + SPARE)
#define STEPS 400

struct trial {
    struct ticket_scheduler *scheduler;
    int64_t tickets[CREW], ends[CREW]; /* of what each computes; ticket -1: nothing */
    int64_t slow[CREW];                /* how many times longer it takes */
    int64_t now, late, counted;
    bool seen[STEPS * SHARES];
};

static void deal(struct trial *trial)
{
    for (unsigned worker = 0; worker < CREW; worker++) {
        if (trial->tickets[worker] >= 0)
            continue;
        trial->tickets[worker] = take(trial->scheduler, worker, trial->now);
        trial->ends[worker] = trial->now + 100 * trial->slow[worker] + worker;
    }
}

static void finish_next(struct trial *trial)
{
    unsigned next = CREW;
    for (unsigned worker = 0; worker < CREW; worker++)
        if (trial->tickets[worker] >= 0 && (next == CREW || trial->ends[worker] < trial->ends[next]))
            next = worker;
    cr_assert(next < CREW, "somebody computes");
    int64_t ticket = trial->tickets[next];
    trial->now = trial->ends[next];
    trial->tickets[next] = -1;
    if (!done(trial->scheduler, next, ticket, trial->now)) {
        trial->late++;
        return;
    }
    cr_assert(ticket / SHARES == ticket_scheduler_step(trial->scheduler) && !trial->seen[ticket], "ticket %lld",
              (long long)ticket);
    trial->seen[ticket] = true;
    trial->counted++;
}

/* Returns the time of all steps with one worker that many times slower; each ticket counts once, in its step. */
static int64_t time_of(unsigned spare, int64_t slowness, int64_t *ret_late)
{
    static struct trial trial;
    trial = (struct trial){.scheduler = make(PARAMETER_SERVER_SYNCHRONOUS, SHARES, STEPS * SHARES, 0, spare)};
    for (unsigned worker = 0; worker < CREW; worker++) {
        trial.tickets[worker] = -1;
        trial.slow[worker] = worker == 2 ? slowness : 1;
        if (worker < SHARES + spare)
            ticket_scheduler_join(trial.scheduler, worker);
    }
    while (!ticket_scheduler_is_over(trial.scheduler)) {
        deal(&trial);
        finish_next(&trial);
        if (ticket_scheduler_step_is_complete(trial.scheduler))
            ticket_scheduler_advance(trial.scheduler);
    }
    cr_expect(trial.counted == STEPS * SHARES, "each share, and so each example, counts once");
    *ret_late = trial.late;
    ticket_scheduler_free(trial.scheduler);
    return trial.now;
}

Test(ticket_scheduler, the_first_result_of_each_share_counts_and_late_ones_are_dropped)
{
    int64_t late;
    int64_t even = time_of(SPARE, 1, &late), slowed = time_of(SPARE, 10, &late);
    cr_expect(late > 0, "the slow one's answers come late");
    cr_expect(slowed * 8 <= even * 10, "%lld instead of %lld: less than 80 %% of the pace", (long long)slowed,
              (long long)even);
    cr_expect(time_of(0, 10, &late) > 5 * time_of(0, 1, &late), "without spare ones all wait");
}
