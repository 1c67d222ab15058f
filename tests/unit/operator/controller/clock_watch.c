/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/clock_watch.h"

#include <criterion/criterion.h>

#define HOUR_MS 3600000

Test(clock_watch, a_clock_that_is_set_is_noticed_both_ways)
{
    struct clock_watch watch;
    clock_watch_init(&watch, 1700000000000, 5000);
    cr_assert_eq(clock_watch_look(&watch, 1700000001000, 6000), 0);
    cr_assert_eq(clock_watch_look(&watch, 1700000002000 + HOUR_MS, 7000), HOUR_MS);
    cr_assert_eq(clock_watch_look(&watch, 1700000003000 + HOUR_MS, 8000), 0);
    cr_assert_eq(watch.set_ms, HOUR_MS);
    cr_assert_eq(clock_watch_look(&watch, 1700000004000 - HOUR_MS, 9000), -2 * HOUR_MS);
    cr_assert_eq(watch.set_ms, -HOUR_MS);
}

Test(clock_watch, a_clock_that_is_slewed_is_followed)
{
    struct clock_watch watch;
    clock_watch_init(&watch, 0, 0);
    for (int64_t second = 1; second <= 10000; second++)
        cr_assert_eq(clock_watch_look(&watch, 1001 * second, 1000 * second), 0);
    cr_assert_eq(watch.set_ms, 0);
}
