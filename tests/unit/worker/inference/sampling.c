/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/inference/sampling.h"

#include <criterion/criterion.h>
#include <math.h>

#define TOKENS 5
static const float logits[TOKENS] = {1, 3, -2, 3, 2};

Test(sampling, at_temperature_0_takes_the_first_of_the_most_probable)
{
    const struct sampling greedy = {.temperature = 0, .top_k = 3, .seed = 9};
    for (int64_t i = 0; i < 100; i++)
        cr_assert_eq(sampling_choose(&greedy, logits, TOKENS, i), 1);
}

Test(sampling, is_a_function_of_seed_and_number)
{
    const struct sampling one = {.temperature = 1, .seed = 1}, other = {.temperature = 1, .seed = 2};
    int differing = 0;
    for (int64_t i = 0; i < 200; i++) {
        cr_assert_eq(sampling_choose(&one, logits, TOKENS, i), sampling_choose(&one, logits, TOKENS, i));
        differing += sampling_choose(&one, logits, TOKENS, i) != sampling_choose(&other, logits, TOKENS, i);
    }
    cr_assert_gt(differing, 20);
}

#define DRAWS 20000
static void check_shares(const struct sampling *sampling, const double shares[TOKENS])
{
    int64_t counts[TOKENS] = {0};
    for (int64_t i = 0; i < DRAWS; i++)
        counts[sampling_choose(sampling, logits, TOKENS, i)]++;
    for (int i = 0; i < TOKENS; i++)
        cr_expect_float_eq((double)counts[i] / DRAWS, shares[i], 0.015, "token %d: %f, not %f", i,
                           (double)counts[i] / DRAWS, shares[i]);
}

Test(sampling, follows_the_softmax_of_the_divided_logits)
{
    const double temperatures[] = {0.5, 1, 4};
    for (size_t t = 0; t < sizeof temperatures / sizeof *temperatures; t++) {
        double shares[TOKENS], sum = 0;
        for (int i = 0; i < TOKENS; i++)
            sum += shares[i] = exp((double)logits[i] / temperatures[t]);
        for (int i = 0; i < TOKENS; i++)
            shares[i] /= sum;
        check_shares(&(struct sampling){.temperature = temperatures[t], .seed = 4}, shares);
    }
}

Test(sampling, leaves_out_all_but_the_k_most_probable)
{
    const double two[TOKENS] = {0, 0.5, 0, 0.5, 0}, one[TOKENS] = {0, 1, 0, 0, 0};
    check_shares(&(struct sampling){.temperature = 1, .top_k = 2}, two);
    check_shares(&(struct sampling){.temperature = 50, .top_k = 1}, one);
}

Test(sampling, stands_extreme_logits)
{
    const float extreme[] = {-3e38f, 3e38f, 0};
    cr_assert_eq(sampling_choose(&(struct sampling){.temperature = 1e-6}, extreme, 3, 0), 1);
    cr_assert_eq(sampling_choose(&(struct sampling){.temperature = 100}, extreme, 3, 0), 1);
}
