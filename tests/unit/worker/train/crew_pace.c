/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/crew_pace.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct crew_seat seats[CREW_SIZE_MAX] = {
    {.role = "worker", .index = 0}, {.role = "worker", .index = 1}, {.role = "worker", .index = 2}};

#define MS 1000000LL

Test(crew_pace, a_line_is_due_after_one_second_and_then_every_five)
{
    struct crew_pace pace = {.steps = 0};
    struct world world = {.size = 2, .members = {2, 0}};
    struct strategy_result result = {.own_ns = {4 * MS, 9 * MS}};
    char text[CREW_PACE_TEXT_MAX];
    int64_t now = 7000 * MS;
    for (int step = 1; step <= 100; step++) {
        now += 10 * MS;
        crew_pace_add(&pace, &world, &result, 1, 10 * MS, now);
        cr_assert_eq(crew_pace_line(&pace, seats, step, now, text), step == 100, "step %d", step);
    }
    cr_expect_str_eq(text, "pace of the crew to step 100: 10.0 ms a step; own parts worker 0 9.0 ms, worker 2 4.0 ms");
    crew_pace_add(&pace, &world, &result, 1, 10 * MS, now + 10 * MS);
    cr_expect_not(crew_pace_line(&pace, seats, 101, now + 4990 * MS, text));
    cr_expect(crew_pace_line(&pace, seats, 101, now + 5001 * MS, text));
}

Test(crew_pace, the_longest_of_several_local_steps_counts_once)
{
    struct crew_pace pace = {.steps = 0};
    struct world world = {.size = 2, .members = {0, 1}};
    struct strategy_result result = {.own_ns = {2 * MS, 3 * MS}, .longest_ns = {10 * MS, 3 * MS}, .own_steps = 4};
    char text[CREW_PACE_TEXT_MAX];
    crew_pace_add(&pace, &world, &result, 4, 2000 * MS, 2000 * MS);
    cr_assert(crew_pace_line(&pace, seats, 4, 2000 * MS, text));
    cr_expect_str_eq(text, "pace of the crew to step 4: 500.0 ms a step; own parts worker 0 4.0 ms, worker 1 3.0 ms");
}

Test(crew_pace, one_member_or_no_measurement_makes_no_line)
{
    struct crew_pace pace = {.steps = 0};
    struct world world = {.size = 2, .members = {0, 1}};
    struct strategy_result result = {.own_ns = {5 * MS, 0}};
    char text[CREW_PACE_TEXT_MAX];
    crew_pace_add(&pace, &world, &result, 1, 2000 * MS, 2000 * MS);
    cr_expect_not(crew_pace_line(&pace, seats, 1, 2000 * MS, text));
    cr_expect_not(crew_pace_line(&pace, seats, 1, 9000 * MS, text));
}

Test(crew_pace, the_largest_crew_fits_into_a_line)
{
    struct crew_pace pace = {.steps = 0};
    struct world world = {.size = CREW_SIZE_MAX};
    static struct strategy_result result;
    struct crew_seat many[CREW_SIZE_MAX];
    char text[CREW_PACE_TEXT_MAX];
    for (unsigned i = 0; i < CREW_SIZE_MAX; i++) {
        world.members[i] = (unsigned char)i;
        many[i] = (struct crew_seat){.role = "worker", .index = i};
        result.own_ns[i] = 3600000 * MS;
    }
    crew_pace_add(&pace, &world, &result, 1, 3600000 * MS, 3600000 * MS);
    cr_assert(crew_pace_line(&pace, many, 1000000000, 3600000 * MS, text));
    cr_expect(strstr(text, "worker 63 3600000.0 ms") && !strstr(text, "worker 64"), "%s", text);
}
