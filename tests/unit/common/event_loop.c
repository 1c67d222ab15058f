/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/event_loop.h"

static struct event_loop *loop;

static void setup(void)
{
    struct error error = ERROR_INIT;
    cr_assert_eq(event_loop_new(&loop, &error), 0, "%s", error.message);
}

static void teardown(void)
{
    event_loop_free(loop);
}

TestSuite(event_loop, .init = setup, .fini = teardown, .timeout = 120);

static char order[64];

static void note(void *context)
{
    size_t used = strlen(order);
    order[used] = *(const char *)context;
    order[used + 1] = '\0';
}

static void stop(void *context)
{
    (void)context;
    event_loop_stop(loop);
}

Test(event_loop, timers_fire_in_the_order_of_their_time)
{
    event_timer_start(loop, 30, stop, NULL);
    event_timer_start(loop, 20, note, (char[]){"c"});
    event_timer_start(loop, 0, note, (char[]){"a"});
    event_timer_start(loop, 0, note, (char[]){"b"});
    event_timer_cancel(event_timer_start(loop, 10, note, (char[]){"x"}));
    event_loop_run(loop, NULL);
    cr_assert_str_eq(order, "abc");
}

Test(event_loop, a_heap_of_timers_with_holes_keeps_its_order)
{
    enum { COUNT = 500 };
    struct event_timer *timers[COUNT];
    char kept[] = "k", dropped[] = "d";
    for (int i = 0; i < COUNT; i++)
        timers[i] = event_timer_start(loop, (i * 7919) % 20, note, i % 50 == 0 ? kept : dropped);
    for (int i = 0; i < COUNT; i++) {
        if (i % 50 != 0)
            event_timer_cancel(timers[i]);
    }
    event_timer_start(loop, 25, stop, NULL);
    event_loop_run(loop, NULL);
    cr_assert_str_eq(order, "kkkkkkkkkk");
}

static int restarts;

static void restart(void *context)
{
    (void)context;
    if (++restarts < 100)
        event_timer_start(loop, 0, restart, NULL);
}

Test(event_loop, a_timer_that_restarts_itself_waits_for_the_next_turn)
{
    restart(NULL);
    event_loop_turn(loop, 0, NULL);
    cr_assert_eq(restarts, 2);
}

static int ready_calls;
static enum event_interest ready_what;

static void on_ready(void *context, int descriptor, enum event_interest what)
{
    char byte;
    (void)context;
    ready_what = what;
    ready_calls++;
    if (read(descriptor, &byte, 1) == 0)
        event_loop_unwatch(loop, descriptor);
}

Test(event_loop, a_pipe_is_reported_readable_and_its_hang_up_too)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(event_loop_watch(loop, ends[0], EVENT_READ, on_ready, NULL, NULL), 0);
    event_loop_turn(loop, 0, NULL);
    cr_assert_eq(ready_calls, 0);
    cr_assert_eq(write(ends[1], "x", 1), 1);
    event_loop_turn(loop, 1000, NULL);
    cr_assert_eq(ready_calls, 1);
    close(ends[1]);
    event_loop_turn(loop, 1000, NULL);
    cr_assert_eq(ready_calls, 2);
    event_loop_turn(loop, 0, NULL);
    cr_assert_eq(ready_calls, 2, "after event_loop_unwatch nothing is called");
    close(ends[0]);
}

Test(event_loop, watching_again_replaces_the_earlier_watch)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(event_loop_watch(loop, ends[1], EVENT_READ, on_ready, NULL, NULL), 0);
    cr_assert_eq(event_loop_watch(loop, ends[1], EVENT_WRITE, on_ready, NULL, NULL), 0);
    event_loop_turn(loop, 1000, NULL);
    cr_assert_eq(ready_what, EVENT_WRITE);
}

static int others[2];

/* Takes the other pipe away, whose event has been fetched already. */
static void unwatch_other(void *context, int descriptor, enum event_interest what)
{
    (void)context, (void)what;
    ready_calls++;
    event_loop_unwatch(loop, others[descriptor == others[0]]);
}

Test(event_loop, a_callback_may_remove_a_watch_that_is_due_too)
{
    for (int i = 0; i < 2; i++) {
        int ends[2];
        cr_assert_eq(pipe(ends), 0);
        cr_assert_eq(write(ends[1], "x", 1), 1);
        others[i] = ends[0];
        event_loop_watch(loop, ends[0], EVENT_READ, unwatch_other, NULL, NULL);
    }
    event_loop_turn(loop, 1000, NULL);
    cr_assert_eq(ready_calls, 1);
}

static void on_signal(void *context, int signal_number)
{
    *(int *)context = signal_number;
    event_loop_stop(loop);
}

Test(event_loop, signals_arrive_on_the_loop)
{
    int caught = 0;
    cr_assert_eq(event_loop_on_signal(loop, SIGUSR1, on_signal, &caught, NULL), 0);
    cr_assert_eq(event_loop_on_signal(loop, SIGTERM, on_signal, &caught, NULL), 0);
    kill(getpid(), SIGTERM);
    event_loop_run(loop, NULL);
    cr_assert_eq(caught, SIGTERM);
    kill(getpid(), SIGUSR1);
    event_loop_run(loop, NULL);
    cr_assert_eq(caught, SIGUSR1);
}
