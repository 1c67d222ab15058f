/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "worker/device/operations.h"
#include "worker/optimizer/shard_plan.h"

/* Every element behind the statistics is in one stripe of one shard, whose slots lie side by side. */
static void expect_partition(int64_t statistics, int64_t elements, unsigned size)
{
    struct parameter_layout layout = {.elements = elements, .statistics = statistics};
    struct shard_plan plan;
    shard_plan_init(&plan, &layout, size, false);
    cr_assert_eq(plan.stripe % SQUARE_SUM_BLOCK, 0);
    unsigned char *owned = calloc((size_t)elements + 1, 1);
    for (unsigned owner = 0; owner < size; owner++) {
        int64_t slot = 0;
        for (int64_t i = 0; i < shard_stripes(&plan, owner); i++) {
            struct shard_stripe stripe = shard_stripe(&plan, owner, i);
            cr_assert_eq(stripe.slot, slot);
            cr_assert_gt(stripe.elements, 0);
            for (int64_t e = 0; e < stripe.elements; e++)
                owned[stripe.first + e]++;
            slot += stripe.elements;
        }
        cr_assert_eq(slot, shard_elements(&plan, owner));
        cr_assert_eq(shard_mirrored(&plan, shard_mirror(&plan, owner)), owner);
    }
    for (int64_t e = 0; e < elements; e++)
        cr_assert_eq(owned[e], e >= statistics, "element %lld", (long long)e);
    free(owned);
}

Test(shard_plan, cuts_what_there_is)
{
    static const int64_t lengths[] = {0, 1, 16383, 16384, 16385, 50000, 1000003};
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (unsigned size = 1; size <= 9; size++) {
            expect_partition(0, lengths[i], size);
            expect_partition(77, 77 + lengths[i], size);
        }
}

Test(shard_plan, shards_of_a_large_model_are_equal)
{
    struct parameter_layout layout = {.elements = 124439808};
    for (unsigned size = 2; size <= 64; size++) {
        struct shard_plan plan;
        shard_plan_init(&plan, &layout, size, false);
        int64_t least = layout.elements, most = 0;
        for (unsigned owner = 0; owner < size; owner++) {
            int64_t own = shard_elements(&plan, owner);
            least = own < least ? own : least;
            most = own > most ? own : most;
        }
        cr_expect_leq(most - least, plan.stripe, "%u ranks", size);
    }
}
