/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/sweep_bracket.h"

#include "common/job/training_sweep.h"

static int64_t at_most_all(int64_t size)
{
    return size > SWEEP_TRIALS_MAX ? SWEEP_TRIALS_MAX + 1 : size;
}

struct sizes {
    int64_t brackets, round;
    int64_t of[SWEEP_BRACKETS_MAX];
};

static struct sizes sizes_of(int64_t brackets, int64_t factor)
{
    struct sizes sizes = {.brackets = brackets < SWEEP_BRACKETS_MAX ? brackets : SWEEP_BRACKETS_MAX};
    int64_t power = 1;
    for (int64_t rungs = 1; rungs <= sizes.brackets; rungs++) {
        int64_t size = at_most_all((sizes.brackets * power + rungs - 1) / rungs);
        sizes.of[sizes.brackets - rungs] = size;
        sizes.round = at_most_all(sizes.round + size);
        power = at_most_all(power * factor);
    }
    return sizes;
}

int64_t sweep_round_size(int64_t brackets, int64_t factor)
{
    return sizes_of(brackets, factor).round;
}

int64_t sweep_bracket_of(int64_t brackets, int64_t factor, int64_t trial)
{
    struct sizes sizes = sizes_of(brackets, factor);
    int64_t bracket = 0, place = trial % sizes.round;
    while (bracket < sizes.brackets - 1 && place >= sizes.of[bracket])
        place -= sizes.of[bracket++];
    return bracket;
}
