/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/suggestion.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/sweep_value.h"
#include "sweep_scene.h"
#include "sweep_search.h"

static void expect_text(const struct training_sweep *sweep, unsigned parameter, int64_t trial, const char *text)
{
    SCOPED_JSON *value = suggestion_value(sweep, parameter, trial);
    SCOPED_FREE char *found = json_scalar_text(value);
    cr_expect_str_eq(found, text, "parameter %u of trial %ld: %s", parameter, (long)trial, found);
}

Test(suggestion, a_grid_has_every_combination_once)
{
    struct training_sweep sweep =
        sweep_from(SWEEP_HEAD "  algorithm: {type: Grid}\n"
                              "  parameters: [{path: a, values: [x, 0.5]}, {path: b, integer: {min: -1, max: 1}}]\n");
    static const char *const expected[6][2] = {{"x", "-1"},   {"x", "0"},   {"x", "1"},
                                               {"0.5", "-1"}, {"0.5", "0"}, {"0.5", "1"}};
    cr_assert_eq(sweep_trial_count(&sweep), 6);
    for (int64_t trial = 0; trial < 6; trial++)
        for (unsigned parameter = 0; parameter < 2; parameter++)
            expect_text(&sweep, parameter, trial, expected[trial][parameter]);
    training_sweep_release(&sweep);
}

Test(suggestion, max_trials_cuts_a_grid)
{
    struct training_sweep sweep =
        sweep_from(SWEEP_HEAD "  algorithm: {type: Grid}\n  maxTrials: 7\n"
                              "  parameters: [{path: a, integer: {min: 1, max: 1000000}}, {path: b, integer: {min: 1, "
                              "max: 1000000}}]\n");
    cr_expect_eq(sweep_trial_count(&sweep), 7);
    expect_text(&sweep, 0, 6, "1");
    expect_text(&sweep, 1, 6, "7");
    training_sweep_release(&sweep);
}

#define CONDITIONAL(algorithm) CONDITIONAL_WITH(algorithm, "integer: {min: 7, max: 8}")
#define CONDITIONAL_WITH(algorithm, last)                                                                              \
    SWEEP_HEAD                                                                                                         \
    "  algorithm: {" algorithm "}\n"                                                                                   \
    "  parameters: [{path: a, values: [x, y, z]}, {path: b, integer: {min: 1, max: 2}, when: {parameter: a, values: "  \
    "[x, z]}},\n"                                                                                                      \
    "    {path: c, values: [true, false], when: {parameter: b, values: [2]}}, {path: d, " last "}]\n"

/* Parameter b belongs to x and z, c to a b of 2. */
Test(suggestion, a_grid_leaves_out_what_is_not_tried)
{
    static const char *const rows[14] = {"x17", "x18", "x2true7", "x2true8", "x2false7", "x2false8", "y7",
                                         "y8",  "z17", "z18",     "z2true7", "z2true8",  "z2false7", "z2false8"};
    struct training_sweep sweep = sweep_from(CONDITIONAL("type: Grid"));
    cr_assert_eq(sweep_trial_count(&sweep), 14);
    for (int64_t trial = 0; trial < 14; trial++) {
        char row[64] = "";
        for (unsigned i = 0; i < 4; i++) {
            SCOPED_JSON *value = suggestion_value(&sweep, i, trial);
            SCOPED_FREE char *text = json_scalar_text(value);
            snprintf(row + strlen(row), sizeof row - strlen(row), "%s", text ? text : "");
        }
        cr_expect_str_eq(row, rows[trial], "trial %ld: %s", (long)trial, row);
    }
    training_sweep_release(&sweep);
}

Test(suggestion, random_draws_leave_out_what_is_not_tried)
{
    struct training_sweep sweep = sweep_from(CONDITIONAL("type: Random") "  maxTrials: 300\n");
    int tried = 0, deep = 0;
    for (int64_t trial = 0; trial < 300; trial++) {
        SCOPED_JSON *a = suggestion_value(&sweep, 0, trial), *b = suggestion_value(&sweep, 1, trial);
        SCOPED_JSON *c = suggestion_value(&sweep, 2, trial), *d = suggestion_value(&sweep, 3, trial);
        cr_assert_eq(b == NULL, strcmp(json_string(a, ""), "y") == 0);
        cr_assert_eq(c != NULL, json_integer(b, 0) == 2);
        cr_assert_not_null(d);
        tried += b != NULL;
        deep += c != NULL;
    }
    cr_expect(tried > 160 && tried < 240 && deep > 70 && deep < 130, "%d, %d of 300", tried, deep);
    training_sweep_release(&sweep);
}

#define RANDOM                                                                                                         \
    SWEEP_HEAD "  maxTrials: 4\n  algorithm: {seed: 5}\n"                                                              \
               "  parameters: [{path: a, uniform: {min: -2, max: 3}}, {path: b, logUniform: {min: 1e-4, max: 1}},\n"   \
               "    {path: c, integer: {min: 3, max: 6}}, {path: d, values: [x, y, z]}]\n"

/* The first values of this seed. If they change, sweeps that run while the operator is replaced are mixed of two. */
Test(suggestion, random_values_follow_from_seed_and_number)
{
    struct training_sweep sweep = sweep_from(RANDOM);
    cr_expect_eq(sweep_trial_count(&sweep), 4);
    expect_text(&sweep, 0, 0, "1.82991");
    expect_text(&sweep, 1, 0, "0.00354734");
    expect_text(&sweep, 2, 0, "5");
    expect_text(&sweep, 3, 0, "x");
    expect_text(&sweep, 0, 3, "1.35038");
    expect_text(&sweep, 1, 3, "0.0186307");
    training_sweep_release(&sweep);
}

Test(suggestion, random_values_fill_their_ranges)
{
    struct training_sweep sweep = sweep_from(RANDOM);
    int whole[4] = {0}, below = 0;
    double lowest = INFINITY, highest = -INFINITY;
    for (int64_t trial = 0; trial < 1000; trial++) {
        SCOPED_JSON *uniform = suggestion_value(&sweep, 0, trial);
        SCOPED_JSON *logarithmic = suggestion_value(&sweep, 1, trial);
        SCOPED_JSON *integer = suggestion_value(&sweep, 2, trial);
        SCOPED_JSON *word = suggestion_value(&sweep, 3, trial);
        double number = json_number(uniform, NAN), positive = json_number(logarithmic, NAN);
        int64_t index = json_integer(integer, 0) - 3;
        cr_assert(number >= -2 && number <= 3 && positive >= 1e-4 && positive <= 1);
        cr_assert(index >= 0 && index < 4 && json_type(word) == JSON_STRING);
        whole[index]++;
        below += positive < 1e-2;
        lowest = fmin(lowest, number);
        highest = fmax(highest, number);
    }
    cr_expect(lowest < -1.95 && highest > 2.95, "%g to %g", lowest, highest);
    cr_expect(below > 440 && below < 560, "%d of 1000 in the lower half of the logarithms", below);
    for (int i = 0; i < 4; i++)
        cr_expect(whole[i] > 190 && whole[i] < 310, "%d of 1000", whole[i]);
    training_sweep_release(&sweep);
}

Test(suggestion, parameters_are_drawn_independently)
{
    struct training_sweep sweep =
        sweep_from(SWEEP_HEAD "  maxTrials: 4\n  parameters: [{path: a, uniform: {min: 0, max: 1}}, {path: b, uniform: "
                              "{min: 0, max: 1}}]\n");
    int same_half = 0;
    for (int64_t trial = 0; trial < 1000; trial++) {
        SCOPED_JSON *one = suggestion_value(&sweep, 0, trial);
        SCOPED_JSON *other = suggestion_value(&sweep, 1, trial);
        same_half += (json_number(one, 0) < 0.5) == (json_number(other, 0) < 0.5);
    }
    cr_expect(same_half > 440 && same_half < 560, "%d of 1000", same_half);
    training_sweep_release(&sweep);
}

Test(suggestion, a_narrow_range_is_not_rounded_out_of)
{
    struct training_sweep sweep = sweep_from(
        SWEEP_HEAD "  maxTrials: 4\n  parameters: [{path: a, uniform: {min: 1.00000011, max: 1.00000012}}]\n");
    for (int64_t trial = 0; trial < 100; trial++) {
        SCOPED_JSON *value = suggestion_value(&sweep, 0, trial);
        cr_assert(json_number(value, 0) >= 1.00000011 && json_number(value, 0) <= 1.00000012);
    }
    training_sweep_release(&sweep);
}

/* ---------------------------------------------------------------- TPE */

#define LEARNING                                                                                                       \
    SWEEP_HEAD "  maxTrials: 40\n  algorithm: {type: TPE, seed: 5}\n"                                                  \
               "  parameters: [{path: a, uniform: {min: -2, max: 3}}, {path: b, logUniform: {min: 1e-4, max: 1}},\n"   \
               "    {path: c, integer: {min: 3, max: 6}}, {path: d, values: [x, y, z]}]\n"

#define RESULTS_MAX 40

/* A sweep whose first trials are over. */
struct learned {
    struct training_sweep sweep;
    struct trial_record results[RESULTS_MAX];
    struct arena arena;
};

static void learned_init(struct learned *learned, const char *yaml)
{
    *learned = (struct learned){.sweep = sweep_from(yaml)};
    learned->sweep.status.results = learned->results;
}

static void learned_release(struct learned *learned)
{
    learned->sweep.status.results = NULL;
    training_sweep_release(&learned->sweep);
    arena_release(&learned->arena);
}

static void add_record(struct learned *learned, const char *values, const char *objective)
{
    learned->results[learned->sweep.status.result_count++] =
        (struct trial_record){.state = objective ? TRIAL_SUCCEEDED : TRIAL_RUNNING,
                              .values = arena_copy_string(&learned->arena, values),
                              .objective = arena_copy_string(&learned->arena, objective)};
}

/* Draws the values of so many trials, one after the other; the loss is the distance from a = 1, b = 0.01, c = 5 and d = y. */
static void run_trials(struct learned *learned, int count, double sign)
{
    for (int64_t trial = 0; trial < count; trial++) {
        SCOPED_FREE char *values = suggestion_record(&learned->sweep, trial);
        double a, b, c, d;
        char objective[32];
        cr_assert_eq(sscanf(values, "%lf,%lf,%lf,%lf", &a, &b, &c, &d), 4, "%s", values);
        cr_assert(a >= -2 && a <= 3 && b >= 1e-4 && b <= 1 && c >= 3 && c <= 6 && d >= 0 && d <= 2, "%s", values);
        double loss = fabs(a - 1) + fabs(log10(b) + 2) + fabs(c - 5) + (d == 1 ? 0 : 1);
        snprintf(objective, sizeof objective, "%g", sign * loss);
        add_record(learned, values, objective);
    }
}

Test(suggestion, tpe_begins_with_what_random_draws)
{
    struct training_sweep random = sweep_from(RANDOM);
    struct learned learned;
    learned_init(&learned, LEARNING);
    for (int trial = 0; trial < 10; trial++) {
        for (unsigned i = 0; i < 4; i++) {
            SCOPED_JSON *value = suggestion_value(&random, i, trial);
            SCOPED_FREE char *text = json_scalar_text(value);
            expect_text(&learned.sweep, i, trial, text);
        }
        add_record(&learned, "1,0.1,4,0", "1");
    }
    training_sweep_release(&random);
    learned_release(&learned);
}

/* If these change, an operator that replaces another draws other values than that would have; those of started trials stay. */
Test(suggestion, tpe_follows_from_seed_number_and_results)
{
    struct learned learned, again;
    learned_init(&learned, LEARNING);
    learned_init(&again, LEARNING);
    run_trials(&learned, 20, 1);
    run_trials(&again, 20, 1);
    for (int trial = 0; trial < 20; trial++)
        cr_expect_str_eq(learned.results[trial].values, again.results[trial].values);
    SCOPED_FREE char *next = suggestion_record(&learned.sweep, 20);
    SCOPED_FREE char *same = suggestion_record(&again.sweep, 20);
    again.results[0].objective = "-100";
    SCOPED_FREE char *other = suggestion_record(&again.sweep, 20);
    cr_expect_str_eq(next, same);
    cr_expect_str_neq(next, other);
    learned_release(&learned);
    learned_release(&again);
}

static void expect_learns(const char *yaml, double sign)
{
    struct learned learned;
    learned_init(&learned, yaml);
    run_trials(&learned, RESULTS_MAX, sign);
    double first = 0, last = 0;
    for (int trial = 0; trial < 10; trial++) {
        first += fabs(strtod(learned.results[trial].objective, NULL)) / 10;
        last += fabs(strtod(learned.results[RESULTS_MAX - 1 - trial].objective, NULL)) / 10;
    }
    cr_expect(last < 0.6 * first, "a mean loss of %g in the last ten trials, %g in the first", last, first);
    learned_release(&learned);
}

Test(suggestion, tpe_concentrates_on_what_was_good)
{
    expect_learns(LEARNING, 1);
    expect_learns(LEARNING "  objective: {goal: Maximize}\n", -1);
}

Test(suggestion, what_is_recorded_is_not_drawn_again)
{
    struct learned learned;
    learned_init(&learned, LEARNING);
    add_record(&learned, "0.123456789012,0.001,3,2", NULL);
    expect_text(&learned.sweep, 0, 0, "0.123456789012");
    expect_text(&learned.sweep, 1, 0, "0.001");
    expect_text(&learned.sweep, 2, 0, "3");
    expect_text(&learned.sweep, 3, 0, "z");
    SCOPED_FREE char *record = suggestion_record(&learned.sweep, 0);
    cr_expect_str_eq(record, "0.123456789012,0.001,3,2");
    learned_release(&learned);
}

/* Somebody has edited the status: values lie in the space all the same, and what is no number is left out. */
Test(suggestion, records_that_make_no_sense)
{
    static const char *const rows[] = {"9,9,9,9", "-9,-9,-9,-9", "nan,inf,x", "", ",,,", "1"};
    struct learned learned;
    learned_init(&learned, LEARNING);
    learned.sweep.algorithm.startup_trials = 1;
    for (size_t i = 0; i < 6; i++)
        add_record(&learned, rows[i], "1");
    add_record(&learned, NULL, "1");
    for (int64_t trial = 0; trial < 8; trial++) {
        SCOPED_JSON *whole = suggestion_value(&learned.sweep, 2, trial);
        SCOPED_JSON *word = suggestion_value(&learned.sweep, 3, trial);
        SCOPED_JSON *real = suggestion_value(&learned.sweep, 0, trial);
        cr_expect(json_integer(whole, 0) >= 3 && json_integer(whole, 0) <= 6);
        cr_expect_eq(json_type(word), JSON_STRING);
        cr_expect(json_number(real, 99) >= -2 && json_number(real, 99) <= 3, "%g", json_number(real, 99));
    }
    learned_release(&learned);
}

/* With x the best b is 2; with z nothing but a = x is good. What trials of y did says nothing of b. */
Test(suggestion, tpe_learns_a_conditional_parameter_from_trials_that_had_it)
{
    struct learned learned;
    learned_init(&learned,
                 CONDITIONAL_WITH("type: TPE, startupTrials: 5", "uniform: {min: 7, max: 8}") "  maxTrials: 41\n");
    for (int64_t trial = 0; trial < RESULTS_MAX; trial++) {
        SCOPED_FREE char *values = suggestion_record(&learned.sweep, trial);
        bool has_b = values[0] != '1', is_best = strncmp(values, "0,2,", 4) == 0;
        cr_assert_eq(values[2] != ',', has_b, "%s", values);
        add_record(&learned, values, is_best ? "0" : values[0] == '0' ? "1" : has_b ? "3" : "2");
        SCOPED_JSON *b = sweep_trial_value(&learned.sweep, 1, trial);
        cr_assert_eq(b != NULL, has_b, "%s", values);
    }
    int found = 0;
    for (int i = RESULTS_MAX - 20; i < RESULTS_MAX; i++)
        found += strncmp(learned.results[i].values, "0,2,", 4) == 0;
    cr_expect(found >= 12, "%d of the last 20", found);
    learned_release(&learned);
}

/* ---------------------------------------------------------------- numbers in an order */

/* Of 100 seeds, how many have their next trial at the places 9 to 13 of 20 values, when the even places had a loss by their distance
 * from place 11. */
static int near_the_best(const char *values)
{
    struct learned learned;
    int found = 0;
    SCOPED_FREE char *yaml = memory_format(SWEEP_HEAD "  maxTrials: 40\n  algorithm: {type: TPE, startupTrials: 5}\n"
                                                      "  parameters: [{path: a, %s}]\n",
                                           values);
    learned_init(&learned, yaml);
    for (int place = 0; place < 20; place += 2) {
        char record[16], loss[16];
        bool is_list = learned.sweep.parameters[0].values != NULL;
        snprintf(record, sizeof record, "%d", is_list ? place : 8 * (place + 1));
        snprintf(loss, sizeof loss, "%d", abs(place - 11));
        add_record(&learned, record, loss);
    }
    for (learned.sweep.algorithm.seed = 0; learned.sweep.algorithm.seed < 100; learned.sweep.algorithm.seed++) {
        SCOPED_FREE char *record = suggestion_record(&learned.sweep, 10);
        double number = strtod(record, NULL), place = learned.sweep.parameters[0].values ? number : number / 8 - 1;
        cr_assert(place == floor(place) && place >= 0 && place < 20, "%s", record);
        found += place >= 9 && place <= 13;
    }
    learned_release(&learned);
    return found;
}

#define NUMBERS "1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, "

Test(suggestion, tpe_takes_numbers_in_an_order_for_places_on_a_scale)
{
    int ordered = near_the_best("values: [" NUMBERS "524288]");
    int shuffled = near_the_best("values: [" NUMBERS "0]"), words = near_the_best("values: [" NUMBERS "x]");
    int steps = near_the_best("integer: {min: 8, max: 167, step: 8}");
    cr_expect(ordered > 70 && steps > 70, "%d and %d of 100", ordered, steps);
    cr_expect(shuffled < 60 && words < 60, "%d and %d of 100", shuffled, words);
}

Test(suggestion, integers_with_a_step)
{
    struct training_sweep grid = sweep_from(SWEEP_HEAD "  algorithm: {type: Grid}\n  parameters: [{path: a, integer: "
                                                       "{min: 10, max: 39, step: 10}}]\n");
    struct training_sweep random = sweep_from(SWEEP_HEAD "  maxTrials: 4\n  parameters: [{path: a, integer: "
                                                         "{min: 10, max: 39, step: 10}}]\n");
    int counts[3] = {0};
    cr_assert_eq(sweep_trial_count(&grid), 3);
    for (int64_t trial = 0; trial < 300; trial++) {
        SCOPED_JSON *value = suggestion_value(&random, 0, trial);
        int64_t number = json_integer(value, 0);
        cr_assert(number % 10 == 0 && number >= 10 && number <= 30, "%ld", (long)number);
        counts[number / 10 - 1]++;
    }
    expect_text(&grid, 0, 2, "30");
    cr_expect(counts[0] > 70 && counts[1] > 70 && counts[2] > 70);
    training_sweep_release(&grid);
    training_sweep_release(&random);
}

#define LOG_INTEGER(algorithm, max)                                                                                    \
    SWEEP_HEAD "  maxTrials: 40\n  algorithm: {" algorithm "}\n  parameters: [{path: a, integer: {min: 1, max: " max   \
               ", scale: Log}}]\n"

Test(suggestion, integers_on_a_logarithmic_scale)
{
    struct training_sweep sweep = sweep_from(LOG_INTEGER("type: Random", "1000"));
    int below = 0, first = 0;
    for (int64_t trial = 0; trial < 1000; trial++) {
        SCOPED_JSON *value = suggestion_value(&sweep, 0, trial);
        int64_t number = json_integer(value, 0);
        cr_assert(number >= 1 && number <= 1000);
        below += number <= 22; /* the middle between log(0.5) and log(1000.5) */
        first += number == 1;
    }
    cr_expect(below > 440 && below < 560, "%d of 1000 in the lower half of the logarithms", below);
    cr_expect(first > 100 && first < 190, "%d of 1000 are 1", first);
    training_sweep_release(&sweep);
}

/* All candidates are integers, so that those which were tried are known. */
Test(suggestion, tpe_draws_integers_on_a_logarithmic_scale)
{
    struct learned learned;
    learned_init(&learned, LOG_INTEGER("type: TPE, startupTrials: 3", "1000000"));
    for (int64_t trial = 0; trial < RESULTS_MAX; trial++) {
        SCOPED_FREE char *record = suggestion_record(&learned.sweep, trial);
        char loss[32];
        double number = strtod(record, NULL);
        cr_assert(number == floor(number) && number >= 1 && number <= 1000000, "%s", record);
        for (int64_t before = 0; before < trial; before++)
            cr_assert_str_neq(learned.results[before].values, record);
        snprintf(loss, sizeof loss, "%g", fabs(log(number / 64)));
        add_record(&learned, record, loss);
    }
    int found = 0;
    for (int i = RESULTS_MAX - 10; i < RESULTS_MAX; i++)
        found += strtod(learned.results[i].objective, NULL) < 2;
    cr_expect_geq(found, 7, "%d of the last 10 lie near 64", found);
    learned_release(&learned);
}

/* ---------------------------------------------------------------- no values twice */

/* Records the values of so many trials as a plan does, and returns how many of them are equal to those of an earlier one. */
static int start_trials(struct learned *learned, int count)
{
    char *all[RESULTS_MAX];
    int repeats = 0;
    for (int trial = 0; trial < count; trial++) {
        all[trial] = suggestion_record(&learned->sweep, trial);
        for (int before = 0; before < trial; before++)
            repeats += strcmp(all[before], all[trial]) == 0;
        bool recorded = suggestion_is_to_record(&learned->sweep, trial, all[trial]);
        add_record(learned, recorded ? all[trial] : NULL, trial % 2 ? "1" : "2");
    }
    while (count > 0)
        free(all[--count]);
    return repeats;
}

/* Each of the 14 points once, and what the status has is what the trials' jobs and cox show. */
Test(suggestion, no_trial_repeats_another_until_all_values_were_tried)
{
    static const char *const algorithms[] = {CONDITIONAL("type: Random, seed: 3") "  maxTrials: 100\n",
                                             CONDITIONAL("type: TPE, startupTrials: 3") "  maxTrials: 100\n"};
    for (int i = 0; i < 2; i++) {
        struct learned learned;
        learned_init(&learned, algorithms[i]);
        cr_expect_eq(sweep_trial_count(&learned.sweep), 14);
        cr_expect_eq(start_trials(&learned, 14), 0);
        cr_expect(sweep_is_exhausted(&learned.sweep));
        for (int64_t trial = 0; trial < 14; trial++)
            for (unsigned parameter = 0; parameter < 4; parameter++) {
                SCOPED_JSON *built = suggestion_value(&learned.sweep, parameter, trial);
                SCOPED_JSON *shown = sweep_trial_value(&learned.sweep, parameter, trial);
                cr_expect(built == shown || json_equal(built, shown));
            }
        learned_release(&learned);
    }
}

/* A restarted operator draws the same; a trial of Random that was not drawn again needs no place in the status. */
Test(suggestion, values_are_drawn_again_in_the_same_way)
{
    struct learned learned, again;
    int recorded = 0;
    learned_init(&learned, CONDITIONAL("type: Random, seed: 3") "  maxTrials: 14\n");
    learned_init(&again, CONDITIONAL("type: Random, seed: 3") "  maxTrials: 14\n");
    start_trials(&learned, 14);
    start_trials(&again, 14);
    for (int i = 0; i < 14; i++) {
        const char *one = learned.results[i].values, *other = again.results[i].values;
        cr_expect(one == other || (one && other && strcmp(one, other) == 0));
        recorded += one != NULL;
    }
    cr_expect(recorded > 0 && recorded < 14, "%d of 14", recorded);
    learned_release(&learned);
    learned_release(&again);
}

/* An earlier operator has repeated values. They stay as they are, and the next trial gets new ones. */
Test(suggestion, repeats_of_an_earlier_operator_stay)
{
    struct learned learned;
    bool has_repeat = false;
    learned_init(&learned, SWEEP_HEAD "  maxTrials: 40\n  parameters: [{path: a, integer: {min: 1, max: 12}}]\n");
    cr_assert_eq(sweep_trial_count(&learned.sweep), 12);
    for (int64_t trial = 0; trial < 8; trial++) {
        SCOPED_JSON *drawn = sweep_random_value(&learned.sweep, 0, trial, 0);
        add_record(&learned, NULL, "1");
        SCOPED_JSON *kept = suggestion_value(&learned.sweep, 0, trial);
        cr_expect(json_equal(kept, drawn));
    }
    SCOPED_FREE char *next = suggestion_record(&learned.sweep, 8);
    for (int64_t trial = 0; trial < 8; trial++) {
        SCOPED_JSON *kept = suggestion_value(&learned.sweep, 0, trial);
        SCOPED_FREE char *text = json_scalar_text(kept);
        cr_expect_str_neq(text, next);
        for (int64_t before = 0; before < trial; before++) {
            SCOPED_JSON *other = suggestion_value(&learned.sweep, 0, before);
            has_repeat |= json_equal(kept, other);
        }
    }
    cr_expect(has_repeat, "the test says nothing with this seed");
    learned_release(&learned);
}

/* There is no grid, but with y a trial has no other value than y. */
Test(suggestion, values_repeat_only_where_no_others_are_drawn)
{
    struct learned learned;
    learned_init(&learned, SWEEP_HEAD "  maxTrials: 40\n"
                                      "  parameters: [{path: a, values: [x, y]}, {path: b, uniform: {min: 0, max: 1}, "
                                      "when: {parameter: a, values: [x]}}]\n");
    cr_expect_eq(sweep_trial_count(&learned.sweep), 40);
    cr_expect_eq(start_trials(&learned, RESULTS_MAX), 0);
    cr_expect_not(sweep_is_exhausted(&learned.sweep));
    learned_release(&learned);
}

/* A list has the same value twice, so that there is one point less than it seems. */
Test(suggestion, two_equal_values_in_a_list_end_no_sweep)
{
    struct learned learned;
    learned_init(&learned, SWEEP_HEAD "  maxTrials: 3\n  parameters: [{path: a, values: [x, x, y]}]\n");
    cr_expect_eq(start_trials(&learned, 3), 1);
    learned_release(&learned);
}

/* ---------------------------------------------------------------- how good the values of TPE are */

#define MEDIAN_SEEDS 41
#define MEAN_SEEDS 21

static double median_regret(const struct search_problem *problem, enum sweep_algorithm type)
{
    SCOPED_FREE double *regrets = search_regrets(problem, type, MEDIAN_SEEDS, 100);
    return regrets[MEDIAN_SEEDS / 2];
}

static double mean_regret(const struct search_problem *problem, enum sweep_algorithm type)
{
    SCOPED_FREE double *regrets = search_regrets(problem, type, MEAN_SEEDS, 100);
    double sum = 0;
    for (int i = 0; i < MEAN_SEEDS; i++)
        sum += regrets[i];
    return sum / MEAN_SEEDS;
}

/* Medians of 200 seeds were 0.0077 and 0.086, at random 0.32 and 1.3, and with an estimator that takes each parameter by itself 0.040 and
 * 0.34. */
Test(suggestion, tpe_leaves_a_tenth_of_the_regret_of_random)
{
    const struct search_problem *const problems[] = {search_branin, search_hartmann6};
    for (int i = 0; i < 2; i++) {
        double learned = median_regret(problems[i], SWEEP_TPE), random = median_regret(problems[i], SWEEP_RANDOM);
        cr_expect_lt(learned, random / 10, "%s: %g, and at random %g", problems[i]->name, learned, random);
    }
}

Test(suggestion, tpe_is_better_than_random_with_noise)
{
    double learned = mean_regret(search_noisy, SWEEP_TPE), random = mean_regret(search_noisy, SWEEP_RANDOM);
    cr_expect_lt(learned, random, "%g, and at random %g", learned, random);
}

/* Medians of 200 seeds were 0.0041 and 0.0014, at random 0.39 and 0.091, and without groups 0.50 and 0.30: then half of the sweeps and more
 * never leave the optimizer that was the best at first. */
Test(suggestion, tpe_leaves_a_fifth_of_the_regret_of_random_with_conditions)
{
    const struct search_problem *const problems[] = {search_mixed, search_conditional};
    for (int i = 0; i < 2; i++) {
        double learned = median_regret(problems[i], SWEEP_TPE), random = median_regret(problems[i], SWEEP_RANDOM);
        cr_expect_lt(learned, random / 5, "%s: %g, and at random %g", problems[i]->name, learned, random);
    }
}
