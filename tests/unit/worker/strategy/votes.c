/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/strategy.h"

#include <criterion/criterion.h>

static struct strategy_result count(unsigned chief, unsigned first, unsigned second)
{
    const float words[] = {(float)strategy_vote_word(chief, 5), (float)strategy_vote_word(first, 5),
                           (float)strategy_vote_word(second, 5)};
    struct strategy_result result = {0};
    strategy_result_votes(&result, words, 3);
    return result;
}

Test(votes, a_save_needs_the_chief_and_all_ranks_that_could_take_part)
{
    const unsigned yes = STRATEGY_VOTE_CHECKPOINT;
    struct strategy_result all = count(yes, yes, yes), unasked = count(0, yes, yes), held = count(yes, yes, 0);
    cr_expect(all.checkpoint && all.checkpoint_held_by == 0);
    cr_expect(!unasked.checkpoint && unasked.checkpoint_held_by == 0);
    cr_expect(!held.checkpoint && held.checkpoint_held_by == 2);
    cr_expect(count(yes, 0, 0).checkpoint_held_by == 1);
}

Test(votes, one_is_enough_to_form_the_crew_anew)
{
    struct strategy_result result = count(0, 0, STRATEGY_VOTE_LEAVE | STRATEGY_VOTE_REFORM);
    cr_expect(result.reform && result.leaving == 1 && result.leaves[2] && !result.checkpoint);
}
