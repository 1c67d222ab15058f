/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounding to bfloat16 against its definition.
 */
#include "tests/unit/worker/device/operation_check.h"

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

Test(bfloat16, the_nearest_and_of_two_the_even_one)
{
    static const struct {
        uint32_t from, to;
    } cases[] = {
        {0x00000000, 0x00000000},                           /* zero */
        {0x80000000, 0x80000000}, {0x3f800000, 0x3f800000}, /* 1 */
        {0x3f807fff, 0x3f800000},                           /* below the middle */
        {0x3f808000, 0x3f800000},                           /* the middle: the even one is below */
        {0x3f808001, 0x3f810000}, {0x3f818000, 0x3f820000}, /* the middle: the even one is above */
        {0xbf818000, 0xbf820000}, {0x3fffffff, 0x40000000}, /* into the next power of two */
        {0x7f7f0000, 0x7f7f0000},                           /* the largest */
        {0x7f7f8000, 0x7f800000},                           /* nearer to infinity */
        {0xff800000, 0xff800000},                           /* infinity */
    };
    enum { COUNT = sizeof cases / sizeof *cases };
    float x[COUNT], y[COUNT];
    for (int i = 0; i < COUNT; i++)
        x[i] = from_bits(cases[i].from);
    check_run(OPERATION_round_bfloat16, &(struct round_bfloat16){COUNT, x, y}, 1, NULL);
    for (int i = 0; i < COUNT; i++)
        cr_expect_eq(bits_of(y[i]), cases[i].to, "%08x became %08x", cases[i].from, bits_of(y[i]));
}

Test(bfloat16, what_is_no_number_stays_none)
{
    float x[] = {from_bits(0x7fc00000), from_bits(0xffc00000), from_bits(0x7f800001), from_bits(0x7fffffff)};
    check_run(OPERATION_round_bfloat16, &(struct round_bfloat16){4, x, x}, 1, NULL);
    for (int i = 0; i < 4; i++) {
        cr_expect(isnan(x[i]), "%08x", bits_of(x[i]));
        cr_expect_eq(bits_of(x[i]) & 0xffff, 0);
    }
}

Test(bfloat16, numbers_are_off_by_half_a_place_at_most)
{
    enum { COUNT = 70001 };
    float *x = check_numbers(COUNT, 1), *y = check_numbers(COUNT, 2);
    check_run(OPERATION_round_bfloat16, &(struct round_bfloat16){COUNT, x, y}, 3, NULL);
    for (int i = 0; i < COUNT; i++) {
        cr_assert_eq(bits_of(y[i]) & 0xffff, 0);
        cr_assert_leq(fabsf(y[i] - x[i]), fabsf(x[i]) / 256);
    }
    check_run(OPERATION_round_bfloat16, &(struct round_bfloat16){COUNT, y, x}, 2, NULL);
    cr_assert_eq(memcmp(x, y, COUNT * sizeof *x), 0, "what is rounded stays");
    free(x), free(y);
}
