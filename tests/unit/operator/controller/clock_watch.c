/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/clock_watch.h"

#include <criterion/criterion.h>

#define HOUR_MS 3600000

static int64_t look(struct clock_watch *watch, int64_t now_ms, int64_t elapsed_ms)
{
    return clock_watch_look(watch, elapsed_ms, now_ms, elapsed_ms);
}

Test(clock_watch, a_clock_that_is_set_is_noticed_both_ways)
{
    struct clock_watch watch = {.begun = false};
    cr_assert_eq(look(&watch, 1700000000000, 5000), 0);
    cr_assert_eq(look(&watch, 1700000001000, 6000), 0);
    cr_assert_eq(look(&watch, 1700000002000 + HOUR_MS, 7000), HOUR_MS);
    cr_assert_eq(look(&watch, 1700000003000 + HOUR_MS, 8000), 0);
    cr_assert_eq(watch.set_ms, HOUR_MS);
    cr_assert_eq(look(&watch, 1700000004000 - HOUR_MS, 9000), -2 * HOUR_MS);
    cr_assert_eq(watch.set_ms, -HOUR_MS);
}

Test(clock_watch, a_clock_that_is_slewed_is_followed)
{
    struct clock_watch watch = {.begun = false};
    cr_assert_eq(look(&watch, 0, 0), 0);
    for (int64_t second = 1; second <= 10000; second++)
        cr_assert_eq(look(&watch, 1001 * second, 1000 * second), 0);
    cr_assert_eq(watch.set_ms, 0);
}

/* Between two of the readings the process got no processor for two seconds. */
Test(clock_watch, a_busy_machine_sets_no_clock)
{
    struct clock_watch watch = {.begun = false};
    cr_assert_eq(clock_watch_look(&watch, 5000, 1700000000000, 7000), 0, "nothing to begin from");
    cr_assert_eq(look(&watch, 1700000003000, 8000), 0);
    cr_assert_eq(clock_watch_look(&watch, 9000, 1700000006000, 11000), 0);
    cr_assert_eq(look(&watch, 1700000007000, 12000), 0);
    cr_assert_eq(clock_watch_look(&watch, 13000, 1700000008000 + HOUR_MS, 15000), 0, "not yet");
    cr_assert_eq(look(&watch, 1700000011000 + HOUR_MS, 16000), HOUR_MS);
    cr_assert_eq(watch.set_ms, HOUR_MS);
}
