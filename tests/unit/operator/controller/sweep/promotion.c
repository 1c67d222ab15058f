/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/promotion.h"
#include "common/job/sweep_template.h"

#include "sweep_scene.h"

#define PAUSING                                                                                                        \
    SWEEP_HEAD "  maxTrials: 20\n  parameters: [{path: a, values: [1]}]\n"                                             \
               "  earlyStopping: {type: ASHA, minSteps: 10, reductionFactor: 2, action: Pause}\n"

/* Trials 0 and 1 are in bracket 0, trials 2 and 3 in bracket 1, and so on. */
#define BRACKETS                                                                                                       \
    SWEEP_HEAD "  maxTrials: 20\n  parameters: [{path: a, values: [1]}]\n"                                             \
               "  earlyStopping: {type: Hyperband, minSteps: 10, reductionFactor: 2, brackets: 2, action: Pause}\n"

/* A trial that is in this state, with the values at its rungs. */
#define PAUSED(values)                                                                                                 \
    {                                                                                                                  \
        .state = TRIAL_PAUSED, .rungs = (values)                                                                       \
    }
#define RUNS(values)                                                                                                   \
    {                                                                                                                  \
        .state = TRIAL_RUNNING, .rungs = (values)                                                                      \
    }

static void expect_next(const char *yaml, const struct trial_record *results, int64_t count, int64_t next, int64_t last)
{
    struct training_sweep sweep = sweep_from(yaml);
    cr_expect_eq(promotion_next(&sweep, results, count), next, "%d, not %d",
                 (int)promotion_next(&sweep, results, count), (int)next);
    cr_expect_eq(promotion_last(&sweep, results, count), last, "%d, not %d",
                 (int)promotion_last(&sweep, results, count), (int)last);
    training_sweep_release(&sweep);
}

Test(promotion, is_for_asha_with_pauses)
{
    static const struct {
        const char *yaml;
        bool used;
    } rows[] = {
        {PAUSING, true},
        {SWEEP_HEAD
         "  maxTrials: 20\n  parameters: [{path: a, values: [1]}]\n  earlyStopping: {type: ASHA, minSteps: 1}\n",
         false},
        {SWEEP_HEAD
         "  maxTrials: 20\n  parameters: [{path: a, values: [1]}]\n  earlyStopping: {type: Median, minSteps: 1}\n",
         false},
        {BRACKETS, true},
        {SWEEP_HEAD "  maxTrials: 20\n  parameters: [{path: a, values: [1]}]\n", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct training_sweep sweep = sweep_from(rows[i].yaml);
        cr_expect_eq(sweep_pauses_trials(&sweep), rows[i].used, "%zu", i);
        training_sweep_release(&sweep);
    }
}

Test(promotion, one_in_so_many_goes_on)
{
    const struct trial_record results[] = {PAUSED("0.5"), PAUSED("0.3"), PAUSED("0.4"), PAUSED("0.6")};
    expect_next(PAUSING, results, 1, -1, 0);
    expect_next(PAUSING, results, 2, 1, 1);
    expect_next(PAUSING, results, 4, 1, 1);
    expect_next(PAUSING "  objective: {goal: Maximize}\n", results, 4, 3, 3);
    expect_next(PAUSING, results, 0, -1, -1);
}

Test(promotion, who_has_gone_on_keeps_its_place)
{
    const struct trial_record results[] = {PAUSED("0.5"), RUNS("0.3"), PAUSED("0.4"), PAUSED("0.6"), PAUSED("0.2,0.1")};
    expect_next(PAUSING, results, 4, 2, 2);
    expect_next(PAUSING, results, 5, -1, 4);
}

Test(promotion, higher_rungs_come_first)
{
    const struct trial_record results[] = {PAUSED("0.1"), PAUSED("0.2"), PAUSED("0.3,0.3"), PAUSED("0.4,0.2"),
                                           RUNS(NULL)};
    expect_next(PAUSING, results, 5, 3, 3);
}

Test(promotion, who_has_passed_a_rung_unseen_has_come_to_it)
{
    const struct trial_record results[] = {
        PAUSED("0.8"), {.state = TRIAL_SUCCEEDED, .rungs = ",2.2"}, {.state = TRIAL_SUCCEEDED, .rungs = ",,0.1"}};
    expect_next(PAUSING, results, 2, 0, 0);
    expect_next(PAUSING, results, 3, -1, 0);
}

Test(promotion, of_equal_ones_the_earlier_goes_on)
{
    const struct trial_record results[] = {PAUSED("1"), PAUSED("1"), PAUSED("1"), PAUSED("1")};
    const struct trial_record one_gone[] = {RUNS("1"), PAUSED("1"), PAUSED("1")};
    expect_next(PAUSING, results, 4, 0, 0);
    expect_next(PAUSING, one_gone, 3, -1, 1);
}

Test(promotion, a_paused_trial_without_values_stays_so)
{
    const struct trial_record results[] = {PAUSED(NULL), PAUSED("x")};
    expect_next(PAUSING, results, 2, -1, -1);
}

Test(promotion, judges_who_comes_to_a_rung)
{
    struct training_sweep sweep = sweep_from(PAUSING);
    struct arena arena = {0};
    const struct trial_record results[] = {RUNS("0.5"), RUNS("0.3"), RUNS("0.4"), RUNS("0.3")};
    const char *why = promotion_judge(&sweep, results, 1, 0, 0, &arena);
    cr_assert_not_null(why, "alone, it waits for others");
    cr_expect_str_eq(why, "0 of the 1 trials that reached this rung are better, and only 0 continue");
    cr_expect_null(promotion_judge(&sweep, results, 2, 1, 0, &arena));
    cr_expect_not_null(promotion_judge(&sweep, results, 3, 2, 0, &arena));
    cr_expect_null(promotion_judge(&sweep, results, 4, 3, 0, &arena));
    arena_release(&arena);
    training_sweep_release(&sweep);
}

Test(promotion, with_brackets_only_trials_of_the_same_one_are_compared)
{
    const struct trial_record results[] = {RUNS("0.3"), PAUSED("0.6"), PAUSED("0.1,0.8"), PAUSED("0.1,0.9")};
    const struct trial_record worse[] = {PAUSED("0.5"), PAUSED("0.4"), PAUSED("0.1,0.1"), RUNS("0.1,0.05")};
    expect_next(BRACKETS, results, 2, -1, 1);
    expect_next(BRACKETS, results, 4, 2, 2);
    expect_next(BRACKETS, worse, 4, 1, 2);
}

Test(promotion, no_trial_pauses_before_the_first_rung_of_its_bracket)
{
    struct training_sweep sweep = sweep_from(BRACKETS);
    struct arena arena = {0};
    const struct trial_record results[] = {RUNS("0.5"), RUNS("0.3"), RUNS("0.9,0.9")};
    cr_expect_str_eq(promotion_judge(&sweep, results, 3, 0, 0, &arena),
                     "1 of the 2 trials of bracket 0 that reached this rung are better, and only 1 continue");
    cr_expect_null(promotion_judge(&sweep, results, 3, 2, 0, &arena));
    cr_expect_not_null(promotion_judge(&sweep, results, 3, 2, 1, &arena), "alone in its bracket, it waits for another");
    arena_release(&arena);
    training_sweep_release(&sweep);
}
