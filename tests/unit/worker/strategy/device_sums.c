/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/device_sums.h"

#include <criterion/criterion.h>

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
