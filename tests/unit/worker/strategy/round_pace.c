/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/round_pace.h"

#include <criterion/criterion.h>

#include "worker/coordination/stragglers.h"
#include "worker/strategy/strategy.h"

#define MS INT64_C(1000000)

static struct round_pace steps_of(int64_t count, int64_t ns)
{
    struct round_pace pace = {0};
    for (int64_t i = 0; i < count; i++)
        round_pace_add_step(&pace, ns);
    return pace;
}

Test(round_pace, tells_the_longest_step_and_the_mean_of_the_others)
{
    struct round_pace pace = steps_of(9, 10 * MS);
    round_pace_add_step(&pace, 70 * MS);
    cr_assert_eq(pace.longest_ns, 70 * MS);
    cr_assert_eq(round_pace_mean_ns(&pace), 10 * MS);
}

Test(round_pace, a_single_step_counts_whole)
{
    struct round_pace pace = steps_of(1, 10 * MS);
    round_pace_add_freeze(&pace, 30 * MS);
    cr_assert_eq(round_pace_mean_ns(&pace), 40 * MS);
}

/* Five minutes in steps of half a second: the sum would be beyond a word. */
Test(round_pace, a_long_rounds_pace_fits_a_word)
{
    struct strategy_result result = {0};
    struct round_pace pace = steps_of(600, 500 * MS);
    const float word = (float)strategy_vote_word(STRATEGY_VOTE_LEAVE, round_pace_mean_ns(&pace));
    strategy_result_votes(&result, &word, 1);
    cr_assert_eq(result.own_ns[0], 500 * MS);
}

/* One of two waits 20 s for the other, frozen, once: its own steps are as long as ever. */
Test(round_pace, a_rank_frozen_while_it_waited_is_not_slow)
{
    enum { STEPS = 10, ROUNDS = 6 };
    struct stragglers *stragglers = stragglers_new(2, NULL);
    for (int round = 0; round < ROUNDS; round++)
        for (unsigned member = 0; member < 2; member++) {
            int64_t own, due;
            struct round_pace pace = steps_of(STEPS, 10 * MS);
            if (member == 1 && round == ROUNDS / 2)
                round_pace_add_freeze(&pace, 20000 * MS);
            cr_assert_eq(
                stragglers_add_steps(stragglers, member, STEPS, round_pace_mean_ns(&pace), pace.longest_ns, &own, &due),
                STRAGGLER_AS_BEFORE);
        }
    stragglers_free(stragglers);
}
