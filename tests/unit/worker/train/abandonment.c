/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/abandonment.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* Far beyond what a test lasts, and no time at all. */
#define NEVER_MS 86400000
#define AT_ONCE_MS 0

static atomic_int abandoned, steps_ended;

static void count(void *context)
{
    atomic_fetch_add((atomic_int *)context, 1);
}

static struct abandonment *start(int64_t patience_ms, void (*abandon)(void *))
{
    struct error error = ERROR_INIT;
    struct abandonment *abandonment = NULL;
    const struct abandonment_options options = {.patience_ms = patience_ms, .abandon = abandon, .context = &abandoned};
    atomic_store(&abandoned, 0);
    cr_assert_eq(abandonment_new(&options, &abandonment, &error), 0, "%s", error.message);
    return abandonment;
}

static void await_abandoned(void)
{
    while (atomic_load(&abandoned) == 0)
        sched_yield();
}

Test(abandonment, a_step_that_outlasts_the_patience_is_abandoned, .timeout = 120)
{
    struct abandonment *a = start(1, count);
    abandonment_step_begins(a);
    abandonment_ask(a);
    await_abandoned();
    abandonment_step_ends(a);
    abandonment_free(a);
    cr_assert_eq(atomic_load(&abandoned), 1, "once");
}

Test(abandonment, a_second_request_does_not_extend_the_patience, .timeout = 120)
{
    struct abandonment *a = start(1000, count);
    abandonment_step_begins(a);
    while (atomic_load(&abandoned) == 0)
        abandonment_ask(a);
    abandonment_step_ends(a);
    abandonment_free(a);
}

Test(abandonment, a_step_that_begins_when_the_time_is_up_as_well, .timeout = 120)
{
    struct abandonment *a = start(AT_ONCE_MS, count);
    abandonment_ask(a);
    abandonment_step_begins(a);
    await_abandoned();
    abandonment_free(a);
}

static struct abandonment *given_up;
static const char *wait_given_up;

static void note_wait(void *context)
{
    wait_given_up = abandonment_wait(given_up);
    count(context);
}

Test(abandonment, a_wait_that_outlasts_the_patience_is_given_up_by_its_name, .timeout = 120)
{
    given_up = start(AT_ONCE_MS, note_wait);
    abandonment_wait_begins(given_up, "a wait");
    abandonment_ask(given_up);
    await_abandoned();
    abandonment_wait_ends(given_up);
    abandonment_free(given_up);
    cr_assert_str_eq(wait_given_up, "a wait");
}

Test(abandonment, without_a_request_nothing_is_abandoned, .timeout = 120)
{
    struct abandonment *a = start(AT_ONCE_MS, count);
    abandonment_step_begins(a);
    abandonment_step_ends(a);
    abandonment_free(a);
    cr_assert_eq(atomic_load(&abandoned), 0);
}

Test(abandonment, a_step_that_ends_in_time_is_not, .timeout = 120)
{
    struct abandonment *a = start(NEVER_MS, count);
    abandonment_step_begins(a);
    abandonment_ask(a);
    abandonment_step_ends(a);
    abandonment_free(a);
    cr_assert_eq(atomic_load(&abandoned), 0);
}

Test(abandonment, a_step_that_changes_the_state_is_not, .timeout = 120)
{
    struct abandonment *a = start(AT_ONCE_MS, count);
    abandonment_step_begins(a);
    abandonment_holds_off(a);
    abandonment_ask(a);
    abandonment_step_ends(a);
    abandonment_free(a);
    cr_assert_eq(atomic_load(&abandoned), 0);
}

/* ---- while one is being abandoned, nothing changes */

static atomic_bool may_end, about_to_hold_off, ended_meanwhile;

static void count_and_wait(void *context)
{
    count(context);
    while (!atomic_load(&may_end))
        sched_yield();
    atomic_store(&ended_meanwhile, atomic_load(&steps_ended) != 0);
}

static void *end_step(void *context)
{
    atomic_store(&about_to_hold_off, true);
    abandonment_holds_off(context);
    atomic_fetch_add(&steps_ended, 1);
    return NULL;
}

Test(abandonment, the_state_does_not_change_during_a_save, .timeout = 120)
{
    pthread_t trainer;
    struct abandonment *a = start(AT_ONCE_MS, count_and_wait);
    abandonment_step_begins(a);
    abandonment_ask(a);
    await_abandoned();
    cr_assert_eq(pthread_create(&trainer, NULL, end_step, a), 0);
    while (!atomic_load(&about_to_hold_off))
        sched_yield();
    for (int i = 0; i < 1000; i++)
        sched_yield();
    atomic_store(&may_end, true);
    pthread_join(trainer, NULL);
    cr_assert_not(atomic_load(&ended_meanwhile));
    cr_assert_eq(atomic_load(&steps_ended), 1);
    abandonment_free(a);
}

Test(abandonment, without_one_there_is_nothing_to_do)
{
    abandonment_step_begins(NULL);
    abandonment_holds_off(NULL);
    abandonment_step_ends(NULL);
    abandonment_ask(NULL);
    abandonment_free(NULL);
}
