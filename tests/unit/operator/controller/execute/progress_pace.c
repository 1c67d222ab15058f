/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/progress_pace.h"

#include <criterion/criterion.h>

#define NOW 1700000000000
#define JOBS 10000

Test(progress_pace, a_lone_job_has_a_turn_a_second)
{
    struct progress_pace pace = {0};
    int64_t turn_ms = 0;
    cr_assert(progress_pace_is_turn(&pace, &turn_ms, NOW), "the first at once");
    cr_assert_eq(turn_ms, NOW + 1000);
    cr_assert_not(progress_pace_is_turn(&pace, &turn_ms, NOW + 999));
    cr_assert(progress_pace_is_turn(&pace, &turn_ms, NOW + 1000));
    cr_assert_eq(turn_ms, NOW + 2000);
}

/* Each job looks whenever its turn has come; none of `seconds` may see more than twenty turns. */
static void check_rate(struct progress_pace *pace, int64_t *turns, size_t jobs, int64_t start_ms, int seconds)
{
    for (int second = 0; second < seconds; second++) {
        size_t used = 0;
        for (int64_t ms = 0; ms < 1000; ms += 10)
            for (size_t job = 0; job < jobs; job++)
                used += progress_pace_is_turn(pace, &turns[job], start_ms + second * 1000 + ms);
        cr_assert_leq(used, PROGRESS_WRITES_A_SECOND, "second %d: %zu", second, used);
    }
}

Test(progress_pace, all_jobs_share_twenty_turns_a_second_from_the_first_on)
{
    struct progress_pace pace = {0};
    static int64_t turns[JOBS];
    check_rate(&pace, turns, JOBS, NOW, 5);
}

Test(progress_pace, the_interval_follows_the_number_of_jobs)
{
    struct progress_pace pace = {0};
    static int64_t turns[60];
    check_rate(&pace, turns, 60, NOW, 12);
    for (size_t job = 0; job < 60; job++) {
        cr_assert_gt(turns[job], NOW + 11000, "nobody is forgotten");
        cr_assert_leq(turns[job], NOW + 15100);
    }
}

Test(progress_pace, missed_turns_are_not_made_up_for_at_once)
{
    struct progress_pace pace = {0};
    static int64_t turns[500];
    check_rate(&pace, turns, 500, NOW, 3);
    check_rate(&pace, turns, 500, NOW + 3600000, 3);
}
