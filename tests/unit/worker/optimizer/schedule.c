/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/optimizer/schedule.h"

#include <criterion/criterion.h>

static double rate(enum schedule_type type, int64_t step)
{
    struct optimizer_spec spec = {.learning_rate = 2.0, .schedule = {type, 10, 0.1}};
    return schedule_rate(&spec, step, 110);
}

Test(schedule, warms_up_and_decays)
{
    cr_assert_float_eq(rate(SCHEDULE_CONSTANT, 5), 1.0, 1e-12);
    cr_assert_float_eq(rate(SCHEDULE_CONSTANT, 10), 2.0, 1e-12);
    cr_assert_float_eq(rate(SCHEDULE_CONSTANT, 110), 2.0, 1e-12);
    cr_assert_float_eq(rate(SCHEDULE_LINEAR, 60), 1.1, 1e-12);
    cr_assert_float_eq(rate(SCHEDULE_LINEAR, 110), 0.2, 1e-12);
    cr_assert_float_eq(rate(SCHEDULE_COSINE, 60), 1.1, 1e-12);
    cr_assert_float_eq(rate(SCHEDULE_COSINE, 110), 0.2, 1e-12);
    cr_assert_float_eq(rate(SCHEDULE_COSINE, 500), 0.2, 1e-12);
}

Test(schedule, without_warm_up_or_final_fraction)
{
    struct optimizer_spec spec = {.learning_rate = 1.0, .schedule = {SCHEDULE_LINEAR, FIELD_UNSET, DECIMAL_UNSET}};
    cr_assert_float_eq(schedule_rate(&spec, 1, 4), 0.75, 1e-12);
    cr_assert_float_eq(schedule_rate(&spec, 4, 4), 0.0, 1e-12);
}
