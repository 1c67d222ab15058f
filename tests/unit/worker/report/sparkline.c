/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/report/sparkline.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

Test(sparkline, a_falling_curve_falls)
{
    struct sparkline line = {0};
    char text[64];
    for (int i = 8; i > 0; i--)
        sparkline_add(&line, i);
    sparkline_print(&line, 8, text, sizeof text);
    cr_assert_str_eq(text, "█▇▆▅▄▃▂▁");
}

Test(sparkline, any_length_fits_the_width)
{
    struct sparkline line = {0};
    char text[3 * 60 + 1];
    for (int i = 0; i < 100000; i++)
        sparkline_add(&line, exp(-i / 20000.0));
    sparkline_print(&line, 60, text, sizeof text);
    cr_assert_eq(strlen(text), 180);
    cr_assert_eq(strncmp(text, "█", 3), 0);
    cr_assert_str_eq(text + 177, "▁");
}

Test(sparkline, nothing_and_flat_and_not_finite)
{
    struct sparkline line = {0};
    char text[64];
    sparkline_print(&line, 10, text, sizeof text);
    cr_assert_str_eq(text, "");
    sparkline_add(&line, NAN);
    sparkline_add(&line, 2);
    sparkline_add(&line, INFINITY);
    sparkline_add(&line, 2);
    sparkline_print(&line, 10, text, sizeof text);
    cr_assert_str_eq(text, "▁▁");
}
