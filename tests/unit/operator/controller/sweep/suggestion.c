/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/suggestion.h"

#include <math.h>

#include "sweep_scene.h"

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
    cr_assert_eq(suggestion_count(&sweep), 6);
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
    cr_expect_eq(suggestion_count(&sweep), 7);
    expect_text(&sweep, 0, 6, "1");
    expect_text(&sweep, 1, 6, "7");
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
    cr_expect_eq(suggestion_count(&sweep), 4);
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
