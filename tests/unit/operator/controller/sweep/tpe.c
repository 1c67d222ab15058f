/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/tpe.h"

#include <criterion/criterion.h>
#include <math.h>

#include "common/philox.h"

#define TRIALS_MAX 300

static void fill_draws(uint64_t seed, double draws[TPE_DRAWS])
{
    for (uint64_t i = 0; i < TPE_DRAWS; i++)
        draws[i] = philox(seed, i, 0).word[0] / 4294967296.0;
}

/* How many of 100 suggestions lie between two numbers. */
static int hits(const struct parzen_space *space, const struct tpe_trial *trials, size_t count, double low, double high)
{
    int found = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        double draws[TPE_DRAWS];
        fill_draws(seed, draws);
        double value = tpe_suggest(space, trials, count, draws);
        found += value >= low && value <= high;
    }
    return found;
}

static void expect_concentrates(const struct parzen_space *space, double best, double near)
{
    struct tpe_trial trials[TRIALS_MAX];
    size_t count = 40;
    for (size_t i = 0; i < count; i++) {
        double value = space->choices > 0
                           ? (double)(i * 7 % space->choices)
                           : space->low + (space->high - space->low) * (double)(i * 7 % count) / (double)count;
        value = space->step > 0 ? floor(value) : value;
        trials[i] = (struct tpe_trial){.value = value, .loss = fabs(value - best)};
    }
    int found = hits(space, trials, count, best - near, best + near);
    cr_expect(found > 90, "%d of 100 are near %g", found, best);
}

Test(tpe, concentrates_on_what_was_good)
{
    expect_concentrates(&(struct parzen_space){.low = -5, .high = 5}, 2, 1);
    expect_concentrates(&(struct parzen_space){.low = 0, .high = 1000, .step = 1}, 300, 100);
    expect_concentrates(&(struct parzen_space){.choices = 5}, 3, 0);
}

Test(tpe, keeps_away_from_trials_without_a_result)
{
    struct parzen_space space = {.choices = 2};
    struct tpe_trial trials[40];
    for (size_t i = 0; i < 40; i++)
        trials[i] = i == 0   ? (struct tpe_trial){.value = 0, .loss = 0}
                    : i < 10 ? (struct tpe_trial){.value = 1, .loss = 1}
                             : (struct tpe_trial){.value = 0, .loss = INFINITY};
    cr_expect_eq(hits(&space, trials, 10, 0, 0), 100);
    cr_expect_eq(hits(&space, trials, 40, 0, 0), 0);
}

/* A tenth is good, rounded up: of 11 trials two, the third is not. */
Test(tpe, a_tenth_is_good)
{
    struct parzen_space space = {.choices = 11};
    struct tpe_trial trials[11];
    for (size_t i = 0; i < 11; i++)
        trials[i] = (struct tpe_trial){.value = (double)i, .loss = (double)i};
    int best = hits(&space, trials, 11, 0, 1), third = hits(&space, trials, 11, 2, 2);
    cr_expect(best == 100 && third == 0, "%d and %d of 100", best, third);
    int alone = hits(&space, trials, 10, 0, 0);
    cr_expect_eq(alone, 100, "%d of 100", alone);
}

Test(tpe, equal_results_make_the_earlier_ones_good)
{
    struct parzen_space space = {.choices = 3};
    struct tpe_trial trials[3] = {{.value = 2, .loss = 1}, {.value = 0, .loss = 1}, {.value = 1, .loss = 1}};
    cr_expect_eq(hits(&space, trials, 3, 2, 2), 100);
}

/* Of 40 trials 30 were stopped early, at values near 1. Four of those that have succeeded are good then, not one. */
Test(tpe, trials_that_were_stopped_are_not_good_but_count)
{
    struct parzen_space space = {.choices = 4};
    struct tpe_trial trials[40], silent[40];
    for (size_t i = 0; i < 40; i++) {
        trials[i] = i < 10 ? (struct tpe_trial){.value = i < 4 ? (double)(i % 2) : 2, .loss = (double)i}
                           : (struct tpe_trial){.value = 3, .loss = INFINITY, .stopped = true};
        silent[i] = trials[i];
        silent[i].stopped = false;
    }
    cr_expect_eq(hits(&space, trials, 40, 3, 3), 0);
    cr_expect_gt(hits(&space, trials, 40, 1, 1), 20, "%d", hits(&space, trials, 40, 1, 1));
    cr_expect_lt(hits(&space, silent, 40, 1, 1), 5, "%d", hits(&space, silent, 40, 1, 1));
}

/* Of twenty trials two are good, the first two; only the second one had the parameter. */
Test(tpe, trials_that_did_not_have_the_parameter_are_in_no_density)
{
    struct parzen_space space = {.choices = 2};
    struct tpe_trial trials[20], others[20];
    for (size_t i = 0; i < 20; i++) {
        trials[i] = (struct tpe_trial){.value = i == 1 ? 1 : i < 8 ? NAN : 0, .loss = (double)i};
        others[i] = (struct tpe_trial){.value = NAN, .loss = (double)i};
    }
    cr_expect_gt(hits(&space, trials, 20, 1, 1), 90);
    int even = hits(&space, others, 20, 1, 1);
    cr_expect(even > 0 && even < 100, "%d of 100 without any that had it", even);
}
