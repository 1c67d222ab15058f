/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/work_queue.h"

#include <criterion/criterion.h>

#include "common/clock.h"
#include "operator/kube/informer.h"

static struct event_loop *loop;
static struct work_queue *queue;
static struct job_entry *entry;

static void take(void *context, struct job_entry *taken)
{
    (void)context;
    taken->executing = true;
}

static void init(void)
{
    cr_assert_eq(event_loop_new(&loop, NULL), 0);
    queue = work_queue_new(loop, take, NULL);
    entry = job_entry_new("n/a");
    entry->executing = true;
}

static void fini(void)
{
    work_queue_remove(queue, entry);
    work_queue_free(queue);
    job_entry_free(entry);
    event_loop_free(loop);
}

TestSuite(work_queue, .init = init, .fini = fini);

Test(work_queue, failures_in_a_row_wait_longer)
{
    int64_t delays_ms[3];
    for (size_t i = 0; i < 3; i++) {
        entry->executing = true;
        int64_t now_ms = clock_now_ms();
        work_queue_failed(queue, entry);
        delays_ms[i] = entry->timer_ms - now_ms;
        work_queue_remove(queue, entry);
    }
    cr_assert_not(entry->executing);
    cr_assert_geq(delays_ms[0], WORK_RETRY_MS);
    cr_assert_geq(delays_ms[1], 2 * WORK_RETRY_MS);
    cr_assert_geq(delays_ms[2], 4 * WORK_RETRY_MS);
}

/* After an outage of any length, a job has failed many times to be written, its creates are delayed, and watches are broken. Even one
 * after the other, all delays end within half a minute. */
Test(work_queue, an_outage_is_over_within_half_a_minute)
{
    job_entry_set_job(entry, "uid");
    for (int failures = 0; failures < 200; failures++) {
        entry->executing = true;
        job_entry_set_obstacle(entry, "uid", OBSTACLE_OUTAGE, NULL, "no answer", clock_now_ms());
        work_queue_failed(queue, entry);
        int64_t looked_at_ms = entry->timer_ms, created_ms = entry->memory.obstacle.retry_ms, now_ms = clock_now_ms();
        int64_t later_ms = looked_at_ms > created_ms ? looked_at_ms : created_ms;
        cr_assert_leq(later_ms - now_ms + INFORMER_RETRY_MAX_MS, 30000, "after %d failures", failures);
        work_queue_remove(queue, entry);
    }
}

/* One job through an outage by a clock of its own: each try ends `try_ms` after it began, and the next one comes when the
 * queue and the obstacle allow it. How long after the outage the first try begins. */
static int64_t comes_back_after_ms(int64_t outage_ms, int64_t try_ms)
{
    int64_t now_ms = 0;
    job_entry_set_job(entry, NULL);
    job_entry_set_job(entry, "uid");
    entry->failures = 0;
    while (now_ms < outage_ms) {
        now_ms += try_ms;
        entry->executing = true;
        job_entry_set_obstacle(entry, "uid", OBSTACLE_OUTAGE, NULL, "no answer", now_ms);
        int64_t before_ms = clock_now_ms();
        work_queue_failed(queue, entry);
        int64_t looked_at_ms = now_ms + entry->timer_ms - before_ms;
        work_queue_remove(queue, entry);
        now_ms = looked_at_ms > entry->memory.obstacle.retry_ms ? looked_at_ms : entry->memory.obstacle.retry_ms;
    }
    return now_ms - outage_ms;
}

Test(work_queue, whenever_an_outage_ends_all_is_tried_within_half_a_minute)
{
    static const int64_t tries_ms[] = {0, 1000, 10000};
    for (size_t i = 0; i < sizeof tries_ms / sizeof *tries_ms; i++)
        for (int64_t outage_ms = 1; outage_ms < 600000; outage_ms += 977)
            cr_assert_leq(comes_back_after_ms(outage_ms, tries_ms[i]), 30000, "an outage of %d ms, tries of %d ms",
                          (int)outage_ms, (int)tries_ms[i]);
}

Test(work_queue, what_changed_meanwhile_does_not_wait_for_the_end_of_a_long_backoff)
{
    entry->failures = 8;
    work_queue_add(queue, entry);
    cr_assert(entry->dirty);
    work_queue_failed(queue, entry);
    cr_assert_leq(entry->timer_ms, clock_now_ms() + WORK_RETRY_MS);
    cr_assert_not(entry->dirty);
}

Test(work_queue, what_changed_meanwhile_is_looked_at_after_a_success)
{
    work_queue_add(queue, entry);
    cr_assert_eq(work_queue_depth(queue), 0);
    work_queue_done(queue, entry);
    cr_assert_eq(work_queue_depth(queue), 1);
}

/* An hour that the clock was set back is not waited for. */
Test(work_queue, what_was_set_for_later_is_set_anew_when_the_clock_is)
{
    entry->executing = false;
    work_queue_add_at(queue, entry, clock_now_ms() + 3600000);
    work_queue_clock_was_set(queue, entry);
    cr_assert_null(entry->timer);
    cr_assert_eq(work_queue_depth(queue), 1, "it is looked at");
    work_queue_add_at(queue, entry, clock_now_ms() + 7200000);
    cr_assert_not_null(entry->timer, "a later time is no longer passed over for the old one");
}

static bool gate;

static bool may_take(void *context)
{
    (void)context;
    return gate;
}

Test(work_queue, nothing_is_taken_while_the_gate_is_closed)
{
    entry->executing = false;
    work_queue_set_gate(queue, may_take);
    work_queue_add(queue, entry);
    for (int i = 0; i < 5; i++)
        event_loop_turn(loop, 10, NULL);
    cr_assert_not(entry->executing);
    cr_assert_eq(work_queue_depth(queue), 1);
    gate = true;
    for (int i = 0; i < 5000 && !entry->executing; i++)
        event_loop_turn(loop, 10, NULL);
    cr_assert(entry->executing);
    cr_assert_eq(work_queue_depth(queue), 0);
}
