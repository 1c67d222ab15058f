/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/early_stopping.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sweep_scene.h"

#define PARAMETERS "  maxTrials: 20\n  parameters: [{path: a, values: [1]}]\n"
#define ASHA SWEEP_HEAD PARAMETERS "  earlyStopping: {type: ASHA, minSteps: 10, reductionFactor: 3}\n"
#define MEDIAN SWEEP_HEAD PARAMETERS "  earlyStopping: {type: Median, minSteps: 10, startupTrials: 2}\n"

#define RESULTS_MAX 10

static void expect_rung(const struct training_sweep *sweep, int64_t steps, int rung)
{
    cr_expect_eq(early_stopping_rung(sweep, steps), rung, "%ld steps: %d, not %d", (long)steps,
                 early_stopping_rung(sweep, steps), rung);
}

Test(early_stopping, rungs_grow_by_the_factor)
{
    struct training_sweep asha = sweep_from(ASHA), median = sweep_from(MEDIAN),
                          none = sweep_from(SWEEP_HEAD PARAMETERS);
    static const int64_t steps[] = {-1, 0, 9, 10, 29, 30, 89, 90, 270};
    static const int rungs[] = {-1, -1, -1, 0, 0, 1, 1, 2, 3};
    for (int i = 0; i < 9; i++)
        expect_rung(&asha, steps[i], rungs[i]);
    expect_rung(&median, 19, 0);
    expect_rung(&median, 20, 1);
    expect_rung(&median, 80, 3);
    expect_rung(&median, INT64_MAX, 23);
    expect_rung(&none, 1000, -1);
    training_sweep_release(&asha);
    training_sweep_release(&median);
    training_sweep_release(&none);
}

Test(early_stopping, the_first_value_at_a_rung_is_recorded)
{
    struct training_sweep sweep = sweep_from(ASHA);
    struct trial_record result = {.state = TRIAL_RUNNING};
    struct arena arena = {0};
    cr_expect_eq(early_stopping_record(&sweep, 5, "9", &result, &arena), -1);
    cr_expect_null(result.rungs);
    cr_expect_eq(early_stopping_record(&sweep, 12, "0.5", &result, &arena), 0);
    cr_expect_eq(early_stopping_record(&sweep, 29, "0.4", &result, &arena), -1);
    cr_expect_eq(early_stopping_record(&sweep, 95, "-1e-05", &result, &arena), 2, "it has passed a rung unseen");
    cr_expect_eq(early_stopping_record(&sweep, 31, "0.3", &result, &arena), -1 + 2,
                 "a crew that starts over goes back");
    cr_expect_str_eq(result.rungs, "0.5,0.3,-1e-05");
    cr_expect_eq(early_stopping_value(&result, 2), -1e-05);
    cr_expect(isnan(early_stopping_value(&result, 3)));
    arena_release(&arena);
    training_sweep_release(&sweep);
}

Test(early_stopping, rungs_that_make_no_sense)
{
    static const char *const rows[] = {"", ",", "x", "nan", "1x,2", "0.5.5"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect(isnan(early_stopping_value(&(struct trial_record){.rungs = rows[i]}, 0)), "%s", rows[i]);
    cr_expect_eq(early_stopping_value(&(struct trial_record){.rungs = ",,2"}, 2), 2);
}

Test(early_stopping, a_trial_that_diverged_counts_at_the_next_rung)
{
    static const struct trial_record results[] = {
        {.state = TRIAL_RUNNING, .rungs = "0.5"},
        {.state = TRIAL_DIVERGED},
        {.state = TRIAL_DIVERGED, .rungs = "0.4"},
        {.state = TRIAL_RUNNING, .rungs = "0.7"},
    };
    struct training_sweep sweep = sweep_from(ASHA);
    struct arena arena = {0};
    cr_expect(isinf(early_stopping_loss(&sweep, results, 1, 0)) && isnan(early_stopping_loss(&sweep, results, 1, 1)));
    cr_expect_eq(early_stopping_loss(&sweep, results, 2, 0), 0.4);
    cr_expect(isinf(early_stopping_loss(&sweep, results, 2, 1)) && isnan(early_stopping_loss(&sweep, results, 2, 2)));
    const char *why = early_stopping_judge(&sweep, results, 4, 3, 0, &arena);
    cr_expect(why && strstr(why, "2 of the 4 trials that reached this rung are better, and only 1 continue"), "%s",
              why ? why : "none");
    arena_release(&arena);
    training_sweep_release(&sweep);
}

/* In bracket 1 no trial is compared before rung 1. */
Test(early_stopping, a_trial_that_diverged_counts_from_the_first_rung_of_its_bracket)
{
    static const struct trial_record results[4] = {[3] = {.state = TRIAL_DIVERGED}};
    struct training_sweep sweep = sweep_from(
        SWEEP_HEAD PARAMETERS "  earlyStopping: {type: Hyperband, minSteps: 10, reductionFactor: 2, brackets: 2}\n");
    cr_assert_eq(early_stopping_bracket(&sweep, 3), 1);
    cr_expect(isnan(early_stopping_loss(&sweep, results, 3, 0)) && isinf(early_stopping_loss(&sweep, results, 3, 1)));
    training_sweep_release(&sweep);
}

/* Records these values at the first rung, one after the other, and returns which of them are stopped, such as "..x". */
static void judge_all(const char *yaml, const char *const *values, int count, char *ret_stopped)
{
    struct training_sweep sweep = sweep_from(yaml);
    struct trial_record results[RESULTS_MAX] = {{.state = TRIAL_RUNNING}};
    struct arena arena = {0};
    for (int i = 0; i < count; i++) {
        cr_assert_eq(early_stopping_record(&sweep, 10, values[i], &results[i], &arena), 0);
        bool stop = early_stopping_judge(&sweep, results, RESULTS_MAX, i, 0, &arena) != NULL;
        results[i].state = stop ? TRIAL_STOPPED : TRIAL_SUCCEEDED;
        ret_stopped[i] = stop ? 'x' : '.';
    }
    ret_stopped[count] = '\0';
    arena_release(&arena);
    training_sweep_release(&sweep);
}

Test(early_stopping, asha_lets_the_best_third_go_on)
{
    static const char *const values[] = {"0.5", "0.6", "0.7", "0.4", "0.45", "0.42", "0.42", "0.1", "0.41"};
    char stopped[RESULTS_MAX + 1];
    judge_all(ASHA, values, 9, stopped);
    /* With three to five one goes on, with six to eight two, with nine three; of equal ones both do. */
    cr_expect_str_eq(stopped, "..x.x....", "%s", stopped);
    judge_all(ASHA "  objective: {goal: Maximize}\n", values, 9, stopped);
    cr_expect_str_eq(stopped, "...xxxxxx", "%s", stopped);
}

Test(early_stopping, hyperband_compares_trials_of_a_bracket_from_its_first_rung_on)
{
    /* Trials 0 and 1 are in bracket 0, trials 2 and 3 in bracket 1, and so on. */
    struct training_sweep sweep = sweep_from(
        SWEEP_HEAD PARAMETERS "  earlyStopping: {type: Hyperband, minSteps: 10, reductionFactor: 2, brackets: 2}\n");
    struct trial_record results[6] = {{.rungs = "0.5,0.5"}, {.rungs = "0.6,0.6"}, {.rungs = "0.1,0.1"},
                                      {.rungs = "0.9,0.9"}, {.rungs = "0.4,0.4"}, {.rungs = "0.7,0.7"}};
    struct arena arena = {0};
    static const char wanted[2][6] = {{'.', 'x', '.', '.', '.', 'x'}, {'.', 'x', '.', 'x', '.', 'x'}};
    for (int rung = 0; rung < 2; rung++)
        for (int64_t trial = 0; trial < 6; trial++) {
            const char *why = early_stopping_judge(&sweep, results, 6, trial, rung, &arena);
            cr_expect_eq(why != NULL, wanted[rung][trial] == 'x', "rung %d, trial %d", rung, (int)trial);
        }
    cr_expect_str_eq(early_stopping_judge(&sweep, results, 6, 3, 1, &arena),
                     "1 of the 2 trials of bracket 1 that reached this rung are better, and only 1 continue");
    arena_release(&arena);
    training_sweep_release(&sweep);
}

Test(early_stopping, median_stops_the_worse_half_once_enough_trials_are_over)
{
    static const char *const values[] = {"0.5", "0.9", "0.7", "0.71", "0.6"};
    char stopped[RESULTS_MAX + 1];
    judge_all(MEDIAN, values, 5, stopped);
    /* The median of 0.5 and 0.9 is 0.7; then of 0.5, 0.7 and 0.9; then of 0.5, 0.7, 0.71 and 0.9. */
    cr_expect_str_eq(stopped, "...x.", "%s", stopped);
    judge_all(MEDIAN "  objective: {goal: Maximize}\n", values, 5, stopped);
    cr_expect_str_eq(stopped, "....x", "%s", stopped);
}

Test(early_stopping, median_judges_a_trial_by_its_best_value)
{
    struct training_sweep sweep = sweep_from(MEDIAN);
    struct trial_record results[3] = {{.state = TRIAL_SUCCEEDED, .rungs = "0.5,0.3"},
                                      {.state = TRIAL_FAILED, .rungs = "0.5,0.3"},
                                      {.state = TRIAL_RUNNING, .rungs = "0.3,0.4"}};
    struct arena arena = {0};
    cr_expect_null(early_stopping_judge(&sweep, results, 3, 2, 1, &arena));
    results[2].rungs = "0.4,0.4";
    const char *why = early_stopping_judge(&sweep, results, 3, 2, 1, &arena);
    cr_assert_not_null(why);
    cr_expect_str_eq(why, "the median of the other trials is 0.3");
    results[1].rungs = results[0].rungs = "0.5";
    cr_expect_null(early_stopping_judge(&sweep, results, 3, 2, 1, &arena), "no other trial was there");
    arena_release(&arena);
    training_sweep_release(&sweep);
}
