/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "operator/kube/backoff.h"

Test(backoff, doubles_up_to_its_ceiling_with_jitter)
{
    static const int64_t longest[] = {100, 200, 400, 800, 1000, 1000};
    for (unsigned attempt = 0; attempt < sizeof longest / sizeof longest[0]; attempt++) {
        for (int i = 0; i < 200; i++) {
            int64_t delay = backoff_delay_ms(100, 1000, attempt);
            cr_assert(delay >= longest[attempt] / 2 && delay <= longest[attempt], "%d: %d", (int)attempt, (int)delay);
        }
    }
    int64_t far = backoff_delay_ms(100, 1000, 4000000000u);
    cr_assert(far >= 500 && far <= 1000);
}

Test(backoff, jitter_reaches_both_ends)
{
    int seen[3] = {0};
    for (int i = 0; i < 300; i++)
        seen[jitter_between(5, 7) - 5]++;
    cr_assert(seen[0] > 0 && seen[1] > 0 && seen[2] > 0);
    cr_assert_eq(jitter_between(4, 4), 4);
    cr_assert_eq(jitter_between(4, 3), 4);
}
