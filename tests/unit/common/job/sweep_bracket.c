/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/sweep_bracket.h"

#include <criterion/criterion.h>

#include "common/job/training_sweep.h"

/* The table of Li et al. 2018 for 81 steps and a factor of 3. */
Test(sweep_bracket, sizes_are_those_of_the_paper)
{
    static const int64_t sizes[] = {81, 34, 15, 8, 5};
    int64_t found[5] = {0};
    for (int64_t trial = 0; trial < 143; trial++)
        found[sweep_bracket_of(5, 3, trial)]++;
    for (int bracket = 0; bracket < 5; bracket++)
        cr_expect_eq(found[bracket], sizes[bracket], "bracket %d", bracket);
    cr_expect_eq(sweep_round_size(5, 3), 143);
    cr_expect_eq(sweep_round_size(3, 4), 25);
}

Test(sweep_bracket, trials_fill_the_brackets_in_rounds)
{
    static const int wanted[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2};
    cr_assert_eq(sweep_round_size(3, 3), 17);
    for (int64_t trial = 0; trial < 40; trial++)
        cr_expect_eq(sweep_bracket_of(3, 3, trial), wanted[trial % 17], "trial %d", (int)trial);
    cr_expect_eq(sweep_bracket_of(1, 4, 7), 0);
}

Test(sweep_bracket, more_trials_than_a_sweep_may_have_are_as_many)
{
    cr_expect_eq(sweep_round_size(8, 100), SWEEP_TRIALS_MAX + 1);
    cr_expect_eq(sweep_bracket_of(8, 100, SWEEP_TRIALS_MAX), 0);
}
