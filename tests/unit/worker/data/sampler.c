/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data/sampler.h"

#include <criterion/criterion.h>
#include <stdlib.h>

Test(sampler, every_epoch_is_a_permutation)
{
    static const int64_t counts[] = {1, 2, 3, 4, 5, 7, 16, 17, 63, 64, 65, 100, 255, 257, 1000, 4096, 4097, 9000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            struct sampler sampler = {7, counts[c]};
            char *seen = calloc((size_t)counts[c], 1);
            for (int64_t p = 0; p < counts[c]; p++) {
                int64_t index = sampler_index(&sampler, epoch, p);
                cr_assert(index >= 0 && index < counts[c]);
                cr_assert_eq(seen[index]++, 0, "%lld twice in %lld", (long long)index, (long long)counts[c]);
            }
            free(seen);
        }
}

static int64_t fixed_points(const struct sampler *a, int64_t epoch_a, const struct sampler *b, int64_t epoch_b)
{
    int64_t same = 0;
    for (int64_t p = 0; p < a->count; p++)
        same += sampler_index(a, epoch_a, p) == sampler_index(b, epoch_b, p);
    return same;
}

Test(sampler, epochs_and_seeds_give_other_orders)
{
    struct sampler seven = {7, 5000}, eight = {8, 5000};
    cr_assert_lt(fixed_points(&seven, 0, &seven, 1), 20);
    cr_assert_lt(fixed_points(&seven, 0, &eight, 0), 20);
    cr_assert_eq(fixed_points(&seven, 3, &seven, 3), 5000);
}

Test(sampler, an_order_has_no_trend)
{
    struct sampler sampler = {1, 10000};
    double first_half = 0;
    for (int64_t p = 0; p < 5000; p++)
        first_half += (double)sampler_index(&sampler, 0, p);
    cr_assert_float_eq(first_half / 5000, 5000.0, 150.0);
}

Test(sampler, shards_cover_a_batch)
{
    for (int64_t batch = 0; batch < 20; batch++)
        for (int64_t shards = 1; shards < 9; shards++) {
            int64_t next = 0;
            for (int64_t s = 0; s < shards; s++) {
                int64_t first, count = sampler_shard(batch, shards, s, &first);
                cr_assert_eq(first, next);
                next += count;
            }
            cr_assert_eq(next, batch);
        }
}
