/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/evaluation.h"

#include <criterion/criterion.h>
#include <math.h>

static const struct loss_sums sums = {.loss = 8, .correct = 1, .count = 4};

Test(evaluation, one_class_each_gives_an_accuracy)
{
    const struct example_format format = {.target_elements = 1, .classes = 10};
    struct evaluation_metrics metrics = evaluation_metrics(&format, 1, &sums);
    cr_expect_eq(metrics.loss, 2);
    cr_expect_eq(metrics.accuracy, 0.25);
    cr_expect(isnan(metrics.perplexity));
}

Test(evaluation, a_class_at_each_position_gives_a_perplexity)
{
    const struct example_format format = {.target_elements = 8, .classes = 10};
    struct evaluation_metrics metrics = evaluation_metrics(&format, 1, &sums);
    cr_expect(isnan(metrics.accuracy));
    cr_expect_float_eq(metrics.perplexity, exp(2), 1e-12);
}

Test(evaluation, numbers_have_an_error_in_their_unit)
{
    for (int64_t elements = 1; elements < 3; elements++) {
        const struct example_format format = {.target_elements = elements};
        struct evaluation_metrics metrics = evaluation_metrics(&format, 100, &sums);
        cr_expect_eq(metrics.loss, 2);
        cr_expect(isnan(metrics.accuracy));
        cr_expect(isnan(metrics.perplexity));
        cr_expect_float_eq(metrics.rmse, 141.4214, 1e-3);
    }
}

/* Nobody knows what it is. */
Test(evaluation, a_program_has_a_loss_of_its_own)
{
    const struct example_format format = {.target_elements = 1, .input_count = 1};
    cr_expect(isnan(evaluation_metrics(&format, 1, &sums).rmse));
}
