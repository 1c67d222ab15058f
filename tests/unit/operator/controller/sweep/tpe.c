/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/tpe.h"

#include <criterion/criterion.h>
#include <math.h>

#include "common/philox.h"

#define TRIALS_MAX 300

#define PARAMETERS_MAX 3

/* A trial of a sweep with one parameter. */
struct simple_trial {
    double value, loss;
    bool stopped;
};

static void suggest(const struct tpe_search *search, const struct tpe_trial *trials, size_t count, uint64_t seed,
                    double *ret_point)
{
    double draws[TPE_CANDIDATES * (PARAMETERS_MAX + 1)];
    for (uint64_t i = 0; i < tpe_draw_count(search->parameters); i++)
        draws[i] = philox(seed, i, 0).word[0] / 4294967296.0;
    tpe_suggest(search, trials, count, draws, ret_point);
}

/* How many of 100 suggestions lie between two numbers. */
static int hits(const struct parzen_space *space, const struct simple_trial *simple, size_t count, double low,
                double high)
{
    int found = 0;
    struct tpe_trial trials[TRIALS_MAX];
    for (size_t i = 0; i < count; i++)
        trials[i] = (struct tpe_trial){&simple[i].value, simple[i].loss, simple[i].stopped};
    for (uint64_t seed = 0; seed < 100; seed++) {
        double value;
        suggest(&(struct tpe_search){.spaces = space, .parameters = 1}, trials, count, seed, &value);
        found += value >= low && value <= high;
    }
    return found;
}

static void expect_concentrates(const struct parzen_space *space, double best, double near)
{
    struct simple_trial trials[TRIALS_MAX];
    size_t count = 40;
    for (size_t i = 0; i < count; i++) {
        double value = space->choices > 0
                           ? (double)(i * 7 % space->choices)
                           : space->low + (space->high - space->low) * (double)(i * 7 % count) / (double)count;
        value = space->step > 0 ? floor(value) : value;
        trials[i] = (struct simple_trial){.value = value, .loss = fabs(value - best)};
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
    struct simple_trial trials[40];
    for (size_t i = 0; i < 40; i++)
        trials[i] = i == 0   ? (struct simple_trial){.value = 0, .loss = 0}
                    : i < 10 ? (struct simple_trial){.value = 1, .loss = 1}
                             : (struct simple_trial){.value = 0, .loss = INFINITY};
    cr_expect_eq(hits(&space, trials, 10, 0, 0), 100);
    cr_expect_eq(hits(&space, trials, 40, 0, 0), 0);
}

/* 15 % are good, rounded up: of 11 trials two, the third is not; of 6 trials one. */
Test(tpe, a_share_is_good)
{
    struct parzen_space space = {.choices = 11};
    struct simple_trial trials[11];
    for (size_t i = 0; i < 11; i++)
        trials[i] = (struct simple_trial){.value = (double)i, .loss = (double)i};
    int best = hits(&space, trials, 11, 0, 1), third = hits(&space, trials, 11, 2, 2);
    cr_expect(best > 95 && third == 0, "%d and %d of 100", best, third);
    int alone = hits(&(struct parzen_space){.choices = 6}, trials, 6, 0, 0);
    cr_expect_gt(alone, 95, "%d of 100", alone);
}

Test(tpe, equal_results_make_the_earlier_ones_good)
{
    struct parzen_space space = {.choices = 3};
    struct simple_trial trials[3] = {{.value = 2, .loss = 1}, {.value = 0, .loss = 1}, {.value = 1, .loss = 1}};
    cr_expect_eq(hits(&space, trials, 3, 2, 2), 100);
}

/* Of 40 trials 30 were stopped early, with choice 3. Six of those that have succeeded are good then, not two. */
Test(tpe, trials_that_were_stopped_are_not_good_but_count)
{
    struct parzen_space space = {.choices = 4};
    struct simple_trial trials[40], silent[40];
    for (size_t i = 0; i < 40; i++) {
        trials[i] = i < 10 ? (struct simple_trial){.value = i < 2   ? 0
                                                            : i < 6 ? 1
                                                                    : 2,
                                                   .loss = (double)i}
                           : (struct simple_trial){.value = 3, .loss = INFINITY, .stopped = true};
        silent[i] = trials[i];
        silent[i].stopped = false;
    }
    cr_expect_eq(hits(&space, trials, 40, 3, 3), 0);
    cr_expect_gt(hits(&space, trials, 40, 1, 1), 20, "%d", hits(&space, trials, 40, 1, 1));
    cr_expect_lt(hits(&space, silent, 40, 1, 1), 5, "%d", hits(&space, silent, 40, 1, 1));
}

static const struct parzen_space pair[2] = {{.choices = 2}, {.low = 0, .high = 1}};

/* The second parameter is tried with choice 1 only. */
static void clear_second(const void *context, double *point)
{
    if (point[0] == *(const double *)context)
        point[1] = NAN;
}

/* Of forty trials four are good, half of them at 0 with 0.2, the other half at 1 with 0.8. */
Test(tpe, what_is_good_together_is_suggested_together)
{
    double points[40][2];
    struct tpe_trial trials[40];
    int together = 0;
    for (size_t i = 0; i < 40; i++) {
        points[i][0] = (double)(i % 2);
        points[i][1] = i < 4 ? (i % 2 ? 0.8 : 0.2) : (double)(i * 7 % 40) / 40;
        trials[i] = (struct tpe_trial){.point = points[i], .loss = (double)i};
    }
    for (uint64_t seed = 0; seed < 100; seed++) {
        double point[2];
        suggest(&(struct tpe_search){.spaces = pair, .parameters = 2}, trials, 40, seed, point);
        together += (point[0] == 1) == (point[1] > 0.5);
    }
    cr_expect_gt(together, 85, "%d of 100", together);
}

/* The best trials have choice 1 and a second parameter near 0.7; those with choice 0 have none. */
Test(tpe, a_parameter_that_is_not_always_tried)
{
    static const double untried = 0;
    double points[40][2];
    struct tpe_trial trials[40];
    int found = 0;
    for (size_t i = 0; i < 40; i++) {
        bool has = i % 2 == 0;
        double value = (double)(i * 7 % 40) / 40;
        points[i][0] = has;
        points[i][1] = has ? value : NAN;
        trials[i] = (struct tpe_trial){.point = points[i], .loss = has ? fabs(value - 0.7) : 0.5};
    }
    for (uint64_t seed = 0; seed < 100; seed++) {
        double point[2];
        suggest(&(struct tpe_search){pair, 2, clear_second, &untried}, trials, 40, seed, point);
        cr_assert_eq(isnan(point[1]), point[0] == 0);
        found += point[0] == 1 && fabs(point[1] - 0.7) < 0.15;
    }
    cr_expect_gt(found, 80, "%d of 100", found);
}

/* With choice 0, which has no second parameter, all trials were better than with choice 1. Where choice 1 is tried, it is near 0.7, where it
 * was best, although none of its trials is among the best of all. The third parameter makes no difference. */
Test(tpe, a_group_learns_from_its_own_best_trials)
{
    static const double untried = 0;
    static const struct parzen_space spaces[3] = {{.choices = 2}, {.low = 0, .high = 1}, {.low = 0, .high = 1}};
    double points[40][3];
    struct tpe_trial trials[40];
    int tried = 0, found = 0;
    for (size_t i = 0; i < 40; i++) {
        bool has = i % 2 == 0;
        double value = (double)(i * 7 % 40) / 40;
        points[i][0] = has;
        points[i][1] = has ? value : NAN;
        points[i][2] = (double)(i * 11 % 40) / 40;
        trials[i] = (struct tpe_trial){.point = points[i], .loss = has ? 1 + fabs(value - 0.7) : 0.5};
    }
    for (uint64_t seed = 0; seed < 400; seed++) {
        double point[3];
        suggest(&(struct tpe_search){spaces, 3, clear_second, &untried}, trials, 40, seed, point);
        tried += point[0] == 1;
        found += point[0] == 1 && fabs(point[1] - 0.7) < 0.15;
    }
    cr_expect(tried >= 20 && tried < 200 && found > 0.8 * tried, "%d, of these %d near the best", tried, found);
}

/* The best choice was tried, and so is passed over until all were. */
Test(tpe, a_candidate_that_was_tried_is_passed_over)
{
    struct parzen_space space = {.choices = 4};
    struct simple_trial trials[4];
    for (size_t i = 0; i < 4; i++)
        trials[i] = (struct simple_trial){.value = (double)i, .loss = (double)i};
    cr_expect_eq(hits(&space, trials, 3, 3, 3), 100);
    cr_expect_gt(hits(&space, trials, 4, 0, 0), 90);
}

Test(tpe, a_parameter_that_was_not_tried_makes_no_difference)
{
    static const double untried = 0;
    double points[3][2] = {{0, NAN}, {1, 0.25}, {1, 0.5}};
    struct tpe_trial trials[3];
    for (size_t i = 0; i < 3; i++)
        trials[i] = (struct tpe_trial){.point = points[i], .loss = (double)i};
    for (uint64_t seed = 0; seed < 100; seed++) {
        double point[2];
        suggest(&(struct tpe_search){pair, 2, clear_second, &untried}, trials, 3, seed, point);
        cr_expect_eq(point[0], 1);
    }
}
