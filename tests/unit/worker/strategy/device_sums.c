/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/device_sums.h"

#include <criterion/criterion.h>

#include "worker/strategy/reduction_tree.h"

Test(device_sums, parts_are_whole_buckets_side_by_side)
{
    const struct graph_bucket buckets[] = {{90, 10}, {60, 30}, {50, 10}, {10, 40}, {0, 10}};
    struct device_part parts[5];
    cr_assert_eq(device_parts_plan(buckets, 5, 40, parts), 3);
    cr_expect(parts[0].offset == 60 && parts[0].elements == 40 && parts[0].last == 1);
    cr_expect(parts[1].offset == 10 && parts[1].elements == 50 && parts[1].last == 3);
    cr_expect(parts[2].offset == 0 && parts[2].elements == 10 && parts[2].last == 4, "the rest is a part, too");
    cr_assert_eq(device_parts_plan(buckets, 5, 1000, parts), 1);
    cr_expect(parts[0].offset == 0 && parts[0].elements == 100 && parts[0].last == 4);
}

Test(device_sums, slices_cover_a_part)
{
    const int64_t lengths[] = {1, 31, 32, 33, 1000, 11760, 2097152};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (unsigned size = 1; size <= 64; size++) {
            int64_t at = 0, first, end;
            for (unsigned owner = 0; owner < size; owner++) {
                device_part_slice(lengths[i], owner, size, &first, &end);
                cr_assert(first == at && end >= first, "%lld in %u", (long long)lengths[i], size);
                at = end;
            }
            cr_assert_eq(at, lengths[i]);
        }
}

/* Returns the contributions of all ranks except the one with the fewest, with one device each. */
static unsigned others_contributions(unsigned shards, unsigned size)
{
    unsigned all = 0, least = REDUCTION_COVER_MAX;
    for (unsigned rank = 0; rank < size; rank++) {
        struct reduction_subtree cover[REDUCTION_COVER_MAX];
        unsigned first, end;
        reduction_rank_leaves(shards, rank, size, &first, &end);
        unsigned own = reduction_cover(shards, first, end, cover);
        least = own < least ? own : least;
        all += own;
    }
    return all - least;
}

/* A rank that owns no whole subtree contributes several sums, so more is received than the part is long. */
Test(device_sums, what_comes_in_is_counted_by_contributions)
{
    bool exceeds = false;
    for (unsigned size = 2; size <= 16; size++)
        for (unsigned shards = size; shards <= 40; shards++) {
            int64_t slice = 1024, others = others_contributions(shards, size);
            int64_t bytes = others * slice * (int64_t)sizeof(float), part = slice * size;
            struct device_sums_options options = {.device_count = 1, .size = size, .shards = shards, .elements = part};
            cr_assert_eq(device_sums_incoming(&options), bytes, "%u shards of %u", shards, size);
            exceeds |= bytes > part * (int64_t)sizeof(float);
            options.in_any_order = true;
            cr_assert_eq(device_sums_incoming(&options), 0);
        }
    cr_expect(exceeds);
}

Test(device_sums, what_comes_in_to_several_devices_of_a_worker)
{
    const struct device_sums_options options = {.device_count = 2, .size = 2, .shards = 4, .elements = 4096};
    cr_assert_eq(device_sums_incoming(&options), (int64_t)(3 * 1024 * sizeof(float)));
}

/* Each sums its own pieces of a part, and those that it mirrors; in any order as well. */
Test(device_sums, what_comes_in_where_shards_are_summed)
{
    const struct parameter_layout layout = {.elements = 64 * SQUARE_SUM_BLOCK};
    struct shard_plan plan;
    struct device_sums_options options = {
        .device_count = 2, .size = 2, .shards = 4, .elements = layout.elements, .in_any_order = true, .plan = &plan};
    shard_plan_init(&plan, &layout, options.size, options.device_count, true);
    cr_assert_eq(device_sums_incoming(&options), 3 * layout.elements / 2 * (int64_t)sizeof(float));
    options.device_count = 1;
    options.size = 4;
    shard_plan_init(&plan, &layout, options.size, options.device_count, true);
    cr_assert_eq(device_sums_incoming(&options), 3 * layout.elements / 2 * (int64_t)sizeof(float));
}
