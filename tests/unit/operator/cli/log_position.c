/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/log_position.h"

#include <criterion/criterion.h>
#include <string.h>

static struct log_position position;
static struct log_end end;

static void come(const char *line)
{
    log_position_take(&position, line, strlen(line));
}

Test(log_position, an_end_is_one_when_a_second_stream_ends_there)
{
    come("2026-01-01T00:00:01Z a");
    come("2026-01-01T00:00:02Z b");
    cr_expect_not(log_end_is_same(&end, &position, 0), "the first");
    log_position_cut(&position);
    come("2026-01-01T00:00:02Z b");
    cr_expect(log_end_is_same(&end, &position, 0));
}

Test(log_position, a_stream_that_brought_more_or_less_does_not_confirm_it)
{
    come("2026-01-01T00:00:02Z b");
    cr_expect_not(log_end_is_same(&end, &position, 7));
    log_position_cut(&position);
    cr_expect_not(log_end_is_same(&end, &position, 7), "nothing came again");
    log_position_cut(&position);
    come("2026-01-01T00:00:02Z b");
    cr_expect_not(log_end_is_same(&end, &position, 9), "another line was begun");
    log_position_cut(&position);
    come("2026-01-01T00:00:02Z b");
    come("2026-01-01T00:00:02Z c");
    cr_expect_not(log_end_is_same(&end, &position, 9), "a line more");
    log_position_cut(&position);
    come("2026-01-01T00:00:02Z b");
    come("2026-01-01T00:00:02Z c");
    cr_expect(log_end_is_same(&end, &position, 9));
}

Test(log_position, a_log_of_nothing_ends_too)
{
    cr_expect_not(log_end_is_same(&end, &position, 0));
    log_position_cut(&position);
    cr_expect(log_end_is_same(&end, &position, 0));
}
