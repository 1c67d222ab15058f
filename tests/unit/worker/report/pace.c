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
        pace_add(&pace, i + 1, SECOND / 4, 1, 256);
    cr_assert_float_eq(pace.examples_per_second, 1024, 1e-6);
    cr_assert_eq(pace_seconds_remaining(&pace, 10), 3);
}

Test(pace, goodput_counts_only_steps_that_were_kept)
{
    struct pace pace;
    pace_start(&pace, 0);
    pace_add(&pace, 1, 3 * SECOND, 1, 1);
    cr_assert_float_eq(pace_goodput(&pace, 4 * SECOND), 0.75, 1e-9);
    cr_assert_eq(pace_goodput(&pace, 0), 0);
}

/* From a checkpoint of step 1000 to 3000, back to 2500, and on to 3500: 500 steps count once, though they were taken twice. */
Test(pace, steps_that_are_taken_again_were_not_kept)
{
    struct pace pace;
    int64_t now = 0;
    pace_start(&pace, 0);
    for (int64_t step = 1001; step <= 3000; step++, now += SECOND)
        pace_add(&pace, step, SECOND, 1, 1);
    cr_assert_float_eq(pace_goodput(&pace, now), 1, 1e-9);
    for (int64_t step = 2501; step <= 3500; step++, now += SECOND)
        pace_add(&pace, step, SECOND, 1, 1);
    cr_assert_float_eq(pace_goodput(&pace, now), 2500.0 / 3000, 1e-9);
    for (int64_t step = 501; step <= 510; step++, now += SECOND)
        pace_add(&pace, step, SECOND, 1, 1);
    cr_assert_float_eq(pace_goodput(&pace, now), 10.0 / 3010, 1e-9, "all of this process's own were lost");
}

/* A slow tenth of them, of which half are taken again. */
Test(pace, what_steps_took_is_known_where_they_were_not_equally_long)
{
    struct pace pace;
    int64_t now = 0;
    pace_start(&pace, 0);
    for (int64_t step = 10; step <= 900; step += 10, now += SECOND)
        pace_add(&pace, step, SECOND, 10, 1);
    for (int64_t step = 910; step <= 1000; step += 10, now += 9 * SECOND)
        pace_add(&pace, step, 9 * SECOND, 10, 1);
    pace_add(&pace, 960, SECOND, 10, 1);
    now += SECOND;
    cr_assert_float_eq(pace_goodput(&pace, now), (90 + 45 + 1) / 181.0, 1e-9);
}

Test(pace, follows_a_change_within_seconds)
{
    struct pace pace;
    pace_start(&pace, 0);
    for (int i = 0; i < 100; i++)
        pace_add(&pace, i + 1, SECOND / 10, 1, 100);
    for (int i = 100; i < 110; i++)
        pace_add(&pace, i + 1, SECOND, 1, 100);
    cr_assert_float_eq(pace.step_seconds, 1, 0.02);
}
