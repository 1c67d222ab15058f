/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/optimizer/loss_scaling.h"

#include <criterion/criterion.h>

static void follow(struct loss_scaling *scaling, int steps, bool skipped)
{
    for (int i = 0; i < steps; i++)
        loss_scaling_follow(scaling, PRECISION_FLOAT16, skipped);
}

Test(loss_scaling, is_of_float16_alone)
{
    struct loss_scaling scaling = {0};
    for (int i = 0; i < 2; i++) {
        enum precision precision = i ? PRECISION_FLOAT32 : PRECISION_BFLOAT16;
        loss_scaling_follow(&scaling, precision, false);
        cr_expect_eq(loss_scaling_factor(&scaling, precision), 1);
        cr_expect_eq(loss_scaling_for_begin_step(&scaling, precision), 0);
    }
    cr_expect_eq(scaling.good_steps, 0);
    cr_expect_eq(loss_scaling_factor(&scaling, PRECISION_FLOAT16), 65536);
}

Test(loss_scaling, a_row_of_good_steps_doubles_it)
{
    struct loss_scaling scaling = {0};
    follow(&scaling, 1999, false);
    cr_expect_eq(scaling.scale, 65536);
    follow(&scaling, 1, false);
    cr_expect(scaling.scale == 131072 && scaling.good_steps == 0);
    follow(&scaling, 50000, false);
    cr_expect_eq(scaling.scale, 1 << 24, "it ends somewhere");
    cr_expect_eq(scaling.skipped_steps, 0);
}

Test(loss_scaling, a_skipped_step_halves_it_and_breaks_the_row)
{
    struct loss_scaling scaling = {0};
    follow(&scaling, 1999, false);
    follow(&scaling, 1, true);
    cr_expect(scaling.scale == 32768 && scaling.good_steps == 0 && scaling.skipped_steps == 1);
    follow(&scaling, 1999, false);
    cr_expect_eq(scaling.scale, 32768);
    follow(&scaling, 15, true);
    cr_expect_eq(scaling.scale, 1);
    follow(&scaling, 1, true);
    cr_expect(scaling.scale == 1 && scaling.skipped_steps == 17);
}
