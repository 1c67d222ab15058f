/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/stragglers.h"

#include <criterion/criterion.h>

#define MS 1000000

static int64_t own, others;

/* A step of three members, the last of which takes `ns`: what changes for it. */
static enum straggler_change step(struct stragglers *stragglers, int64_t ns)
{
    cr_assert(stragglers_add(stragglers, 0, 10 * MS, &own, &others) == STRAGGLER_AS_BEFORE);
    cr_assert(stragglers_add(stragglers, 1, 12 * MS, &own, &others) == STRAGGLER_AS_BEFORE);
    return stragglers_add(stragglers, 2, ns, &own, &others);
}

Test(stragglers, one_that_is_ten_times_slower_is_named_within_a_few_steps_once)
{
    struct stragglers *stragglers = stragglers_new(3);
    unsigned named = 0, after = 0;
    for (unsigned i = 0; i < 30; i++)
        cr_assert(step(stragglers, 11 * MS) == STRAGGLER_AS_BEFORE);
    for (unsigned i = 1; i <= 20; i++)
        if (step(stragglers, 110 * MS) == STRAGGLER_IS_SLOW) {
            named++;
            after = i;
        }
    cr_expect(named == 1 && after <= 10, "named %u times, after %u steps", named, after);
    unsigned well = 0;
    for (unsigned i = 0; i < 20; i++)
        well += step(stragglers, 11 * MS) == STRAGGLER_KEEPS_UP;
    cr_expect(well == 1 && own < 15 * MS && others == 10 * MS);
    stragglers_free(stragglers);
}

Test(stragglers, one_slow_step_or_a_small_difference_names_nobody)
{
    struct stragglers *stragglers = stragglers_new(2);
    for (unsigned i = 0; i < 50; i++) {
        cr_expect(stragglers_add(stragglers, 0, 1 * MS / 4, &own, &others) == STRAGGLER_AS_BEFORE);
        cr_expect(stragglers_add(stragglers, 1, 1 * MS, &own, &others) == STRAGGLER_AS_BEFORE, "0.75 ms");
    }
    cr_expect(stragglers_add(stragglers, 1, 10 * MS, &own, &others) == STRAGGLER_AS_BEFORE);
    for (unsigned i = 0; i < 10; i++)
        cr_expect(stragglers_add(stragglers, 1, 1 * MS, &own, &others) == STRAGGLER_AS_BEFORE);
    stragglers_free(stragglers);
}

Test(stragglers, a_successor_begins_anew)
{
    struct stragglers *stragglers = stragglers_new(3);
    for (unsigned i = 0; i < 3; i++)
        step(stragglers, 110 * MS);
    stragglers_forget(stragglers, 2);
    for (unsigned i = 0; i < 10; i++)
        cr_expect(step(stragglers, 11 * MS) == STRAGGLER_AS_BEFORE);
    stragglers_free(stragglers);
}
