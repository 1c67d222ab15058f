/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounding to float16 against its definition, and its two bytes.
 */
#include "worker/device/float16.h"

#include "tests/unit/worker/device/operation_check.h"

enum { NUMBERS = 0x7c00 }; /* that are not negative, and finite */

/* Returns the value of sixteen bits according to the standard. */
static float meaning(int half)
{
    int exponent = half >> 10, fraction = half & 0x3ff;
    return exponent == 0 ? ldexpf((float)fraction, -24) : ldexpf((float)(1024 + fraction), exponent - 25);
}

Test(float16, two_bytes_mean_what_the_standard_says)
{
    for (int half = 0; half < NUMBERS; half++) {
        cr_assert_eq(float16_unpack((uint16_t)half), meaning(half), "%04x", half);
        cr_assert_eq(float16_unpack((uint16_t)(half | 0x8000)), -meaning(half), "%04x", half);
        cr_assert_eq(float16_pack(meaning(half)), half, "%04x", half);
        cr_assert_eq(float16_pack(-meaning(half)), half | 0x8000, "%04x", half);
    }
    cr_assert_eq(float16_pack(INFINITY), 0x7c00);
    cr_assert_eq(float16_unpack(0xfc00), -INFINITY);
    cr_assert(isnan(float16_unpack(float16_pack(NAN))));
}

Test(float16, the_nearest_and_of_two_the_even_one)
{
    enum { CASES = 5 };
    float *x = malloc(NUMBERS * CASES * sizeof *x), *y = malloc(NUMBERS * CASES * sizeof *y);
    for (int half = 0; half < NUMBERS; half++) {
        float low = meaning(half), high = half + 1 < NUMBERS ? meaning(half + 1) : 65536.0f;
        float middle = low + (high - low) / 2; /* exact */
        const float near[CASES] = {low, middle, nextafterf(middle, 0), nextafterf(middle, high), -middle};
        memcpy(x + half * CASES, near, sizeof near);
    }
    check_run(OPERATION_round_float16, &(struct round_float16){NUMBERS * CASES, x, y}, 3, NULL);
    for (int half = 0; half < NUMBERS; half++) {
        float low = meaning(half), high = half + 1 < NUMBERS ? meaning(half + 1) : INFINITY;
        const float *got = y + half * CASES, even = half % 2 == 0 ? low : high;
        cr_assert(got[0] == low && got[1] == even && got[2] == low && got[3] == high && got[4] == -even,
                  "%04x: %g %g %g %g %g", half, got[0], got[1], got[2], got[3], got[4]);
    }
    free(x), free(y);
}

Test(float16, what_is_too_large_is_infinite_and_what_is_no_number_stays_none)
{
    float x[] = {65519.996f, 65520, 1e30f, -1e30f, INFINITY, -INFINITY, NAN, 1e-30f, -1e-8f};
    check_run(OPERATION_round_float16, &(struct round_float16){9, x, x}, 1, NULL);
    cr_expect_eq(x[0], FLOAT16_MAX);
    cr_expect(x[1] == INFINITY && x[2] == INFINITY && x[3] == -INFINITY && x[4] == INFINITY && x[5] == -INFINITY);
    cr_expect(isnan(x[6]));
    cr_expect(x[7] == 0 && x[8] == 0 && signbit(x[8]));
}
