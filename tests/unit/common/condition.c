/* SPDX-License-Identifier: Apache-2.0 */
#include "common/condition.h"

#include <criterion/criterion.h>

#include "common/clock.h"

/* On the wall clock these deadlines would have been over for decades. */
Test(condition, deadlines_are_on_the_clock_that_never_jumps, .timeout = 120)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition;
    condition_init(&condition);
    pthread_mutex_lock(&lock);
    int64_t deadline_ns = clock_monotonic_ns() + 20000000;
    while (condition_wait_until(&condition, &lock, deadline_ns))
        ;
    cr_expect(clock_monotonic_ns() >= deadline_ns, "a wait was over before its deadline");
    deadline_ns = clock_monotonic_ns() + 20000000;
    while (condition_wait_ms(&condition, &lock, 20))
        ;
    cr_expect(clock_monotonic_ns() >= deadline_ns, "a wait was over before its time");
    cr_expect(!condition_wait_until(&condition, &lock, clock_monotonic_ns() - 1), "a wait began after its deadline");
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&condition);
}
