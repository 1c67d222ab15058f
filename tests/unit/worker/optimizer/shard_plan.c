/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "worker/device/operations.h"
#include "worker/optimizer/shard_plan.h"

/* Every element behind the statistics is in one stripe of one shard, and a shard's slots are contiguous. */
static void expect_partition(int64_t statistics, int64_t elements, unsigned size)
{
    struct parameter_layout layout = {.elements = elements, .statistics = statistics};
    struct shard_plan plan;
    shard_plan_init(&plan, &layout, size, 1, false);
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
        shard_plan_init(&plan, &layout, size, 1, false);
        int64_t least = layout.elements, most = 0;
        for (unsigned owner = 0; owner < size; owner++) {
            int64_t own = shard_elements(&plan, owner);
            least = own < least ? own : least;
            most = own > most ? own : most;
        }
        cr_expect_leq(most - least, plan.stripe, "%u ranks", size);
    }
}

/* A lone rank keeps its shard once, any other also that of the one before it; slots lie side by side. */
Test(shard_plan, a_rank_keeps_its_own_and_a_neighbours)
{
    struct parameter_layout layout = {.elements = 1000003};
    for (unsigned size = 1; size <= 5; size++)
        for (unsigned rank = 0; rank < size; rank++) {
            struct shard_plan plan;
            struct shard_kept kept[SHARDS_KEPT_MAX];
            shard_plan_init(&plan, &layout, size, 1, true);
            unsigned count = shard_kept(&plan, rank, kept);
            cr_assert_eq(count, size > 1 ? 2 : 1);
            cr_assert_eq(kept[0].owner, rank);
            cr_assert_eq(kept[0].slot, 0);
            int64_t elements = shard_elements(&plan, rank);
            if (count > 1) {
                cr_assert_eq(shard_mirror(&plan, kept[1].owner), rank);
                cr_assert_eq(kept[1].slot, elements);
                elements += shard_elements(&plan, kept[1].owner);
            }
            cr_assert_eq(shard_kept_elements(&plan, rank), elements);
        }
}

/* Every element of a stripe is in one device's piece, at its place in the flat arrays and in the slots. */
static void expect_pieces(const struct shard_plan *plan, unsigned owner, int64_t index, int64_t *elements)
{
    struct shard_stripe stripe = shard_stripe(plan, owner, index);
    int64_t behind = 0;
    for (unsigned device = 0; device < plan->devices; device++) {
        struct shard_stripe piece = shard_piece(plan, owner, index, device);
        cr_assert_leq(piece.elements, shard_piece_elements(plan));
        cr_assert(piece.elements == 0 || piece.first == stripe.first + behind);
        cr_assert(piece.elements == 0 || piece.slot == stripe.slot + behind);
        behind += piece.elements;
        elements[device] += piece.elements;
    }
    cr_assert_eq(behind, stripe.elements);
}

Test(shard_plan, devices_have_a_piece_of_each_stripe)
{
    static const int64_t lengths[] = {0, 1, 16385, 50000, 1000003, 40000001};
    for (unsigned l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (unsigned size = 1; size <= 3; size++)
            for (unsigned devices = 1; devices <= 8; devices++) {
                struct parameter_layout layout = {.elements = 77 + lengths[l], .statistics = 77};
                struct shard_plan plan;
                shard_plan_init(&plan, &layout, size, devices, true);
                cr_assert_eq(shard_piece_elements(&plan) % SQUARE_SUM_BLOCK, 0);
                for (unsigned owner = 0; owner < size; owner++) {
                    int64_t elements[8] = {0};
                    for (int64_t i = 0; i < shard_stripes(&plan, owner); i++)
                        expect_pieces(&plan, owner, i, elements);
                    for (unsigned device = 0; device < devices; device++) {
                        cr_assert_eq(shard_device_elements(&plan, owner, device), elements[device]);
                        cr_assert_geq(elements[0], elements[device], "the memory plan counts the first device");
                    }
                }
            }
}

/* A device's part is inverse to the number of all devices. */
Test(shard_plan, eight_devices_of_two_ranks_have_a_sixteenth_each)
{
    struct parameter_layout layout = {.elements = 124439808};
    struct shard_plan plan;
    shard_plan_init(&plan, &layout, 2, 8, true);
    for (unsigned device = 0; device < 8; device++)
        cr_assert_float_eq((double)shard_device_elements(&plan, 1, device) / (double)layout.elements, 1.0 / 16, 2e-3);
}
