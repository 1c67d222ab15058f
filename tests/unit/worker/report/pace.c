/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/report/pace.h"

#include <criterion/criterion.h>

#define SECOND 1000000000LL

Test(pace, rate_and_time_left)
{
    struct pace pace;
    pace_start(&pace, 5 * SECOND);
    cr_assert_eq(pace_seconds_remaining(&pace, 10), -1);
    for (int i = 0; i < 100; i++)
        pace_add(&pace, SECOND / 4, 1, 256);
    cr_assert_float_eq(pace.examples_per_second, 1024, 1e-6);
    cr_assert_eq(pace_seconds_remaining(&pace, 10), 3);
}

Test(pace, goodput_counts_only_steps_that_were_kept)
{
    struct pace pace;
    pace_start(&pace, 0);
    pace_add(&pace, 3 * SECOND, 1, 1);
    cr_assert_float_eq(pace_goodput(&pace, 4 * SECOND), 0.75, 1e-9);
    cr_assert_eq(pace_goodput(&pace, 0), 0);
}

Test(pace, follows_a_change_within_seconds)
{
    struct pace pace;
    pace_start(&pace, 0);
    for (int i = 0; i < 100; i++)
        pace_add(&pace, SECOND / 10, 1, 100);
    for (int i = 0; i < 10; i++)
        pace_add(&pace, SECOND, 1, 100);
    cr_assert_float_eq(pace.step_seconds, 1, 0.02);
}
