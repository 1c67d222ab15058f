/* SPDX-License-Identifier: Apache-2.0
 *
 * Stochastic rounding: what is drawn, its mean, and what stays as it is.
 */
#include "worker/device/stochastic_rounding.h"

#include "tests/unit/worker/device/operation_check.h"

enum { COUNT = 70001 };

static struct stochastic_round rounding(bool to_float16, int64_t count, const float *x, float *y)
{
    return (struct stochastic_round){.count = count, .x = x, .y = y, .to_float16 = to_float16, .key = 7, .step = 3};
}

static float round_by(bool to_float16, float x, uint32_t word)
{
    return to_float16 ? float16_round_by(x, word) : bfloat16_round_by(x, word);
}

/* By another implementation of the generator. */
Test(stochastic_rounding, numbers_have_the_words_of_their_place)
{
    static const struct {
        uint32_t from, bfloat16, float16;
    } cases[] = {
        {0x3dcc0000, 0x3dcc0000, 0x3dcc0000}, {0x3dcc6073, 0x3dcc0000, 0x3dcc6000},
        {0xbdccc0e6, 0xbdcd0000, 0xbdccc000}, {0x3dcd2159, 0x3dcd0000, 0x3dcd2000},
        {0x3dcd81cc, 0x3dcd0000, 0x3dcd8000}, {0xbdcde23f, 0xbdce0000, 0xbdcde000},
        {0x3dce42b2, 0x3dce0000, 0x3dce4000}, {0x3dcea325, 0x3dce0000, 0x3dcea000},
        {0xbdcf0398, 0xbdcf0000, 0xbdcf0000}, {0x3dcf640b, 0x3dcf0000, 0x3dcf6000},
        {0x3dcfc47e, 0x3dd00000, 0x3dcfe000}, {0xbdd024f1, 0xbdd00000, 0xbdd02000},
    };
    enum { CASES = sizeof cases / sizeof *cases };
    float x[CASES], y[CASES];
    for (int i = 0; i < CASES; i++)
        x[i] = float16_with_bits(cases[i].from);
    for (int half = 0; half <= 1; half++) {
        struct stochastic_round op = rounding(half, CASES, x, y);
        op.first = 5;
        check_run(OPERATION_stochastic_round, &op, 1, NULL);
        for (int i = 0; i < CASES; i++)
            cr_expect_eq(float16_bits_of(y[i]), half ? cases[i].float16 : cases[i].bfloat16, "%08x became %08x",
                         cases[i].from, float16_bits_of(y[i]));
    }
}

/* The upper of two numbers that are `step` apart comes as often as x is near it, within five deviations. */
static void check_mean(bool to_float16, float low, float step, double part)
{
    float *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y);
    double upper = 0;
    for (int i = 0; i < COUNT; i++)
        x[i] = low + (float)part * step; /* exact */
    const struct stochastic_round op = rounding(to_float16, COUNT, x, y);
    check_run(OPERATION_stochastic_round, &op, 2, NULL);
    for (int i = 0; i < COUNT; i++) {
        cr_assert(y[i] == low || y[i] == low + step, "%g became %g", x[i], y[i]);
        upper += y[i] != low;
    }
    cr_expect_leq(fabs(upper - part * COUNT), 5 * sqrt(part * (1 - part) * COUNT), "%g: %g of %d", x[0], upper, COUNT);
    free(x), free(y);
}

Test(stochastic_rounding, the_mean_is_the_number)
{
    static const double parts[] = {0.0625, 0.25, 0.5, 0.8125};
    for (int i = 0; i < 4; i++) {
        check_mean(false, 1, 0x1p-7f, parts[i]);
        check_mean(false, -0x1.fep-20f, -0x1p-27f, parts[i]); /* into the next power of two */
        check_mean(true, 1, 0x1p-10f, parts[i]);
        check_mean(true, -3072, -2, parts[i]);
        check_mean(true, 0x1p-20f, 0x1p-24f, parts[i]); /* where steps are equal */
        check_mean(true, 0, -0x1p-24f, parts[i]);
    }
}

/* The lowest word that rounds up is where it is to be, to the last bit that counts. */
Test(stochastic_rounding, words_are_cut_where_the_number_is)
{
    const float x = 1 + 0x1p-23f;
    cr_expect_eq(bfloat16_round_by(x, 0xfffeffff), 1);
    cr_expect_eq(bfloat16_round_by(x, 0xffff0000), 1 + 0x1p-7f);
    cr_expect_eq(float16_round_by(x, 0xfff7ffff), 1);
    cr_expect_eq(float16_round_by(x, 0xfff80000), 1 + 0x1p-10f);
    cr_expect_eq(float16_round_by(0x1p-48f, 0x000000ff), 0x1p-24f);
    cr_expect_eq(float16_round_by(0x1p-48f, 0x00000100), 0);
}

Test(stochastic_rounding, what_is_representable_stays)
{
    static const uint32_t words[] = {0, 0x7fffffff, 0xffffffff};
    for (int w = 0; w < 3; w++)
        for (uint32_t half = 0; half < 0x10000; half++) {
            float wide = float16_with_bits(half << 16), narrow = float16_unpack((uint16_t)half);
            if (!isnan(wide))
                cr_assert_eq(float16_bits_of(bfloat16_round_by(wide, words[w])), half << 16, "%04x", half);
            if (!isnan(narrow))
                cr_assert_eq(float16_bits_of(float16_round_by(narrow, words[w])), float16_bits_of(narrow), "%04x",
                             half);
        }
    for (int half = 0; half <= 1; half++) {
        cr_expect(isnan(round_by(half, NAN, 0xffffffff)) && isnan(round_by(half, float16_with_bits(0xff800001), 0)));
        cr_expect_eq(round_by(half, INFINITY, 0xffffffff), INFINITY);
        cr_expect_eq(round_by(half, -INFINITY, 0), -INFINITY);
    }
}

/* Not by chance. */
Test(stochastic_rounding, beyond_the_largest_the_nearest_counts)
{
    static const uint32_t words[] = {0, 0xffffffff};
    const float largest = float16_with_bits(0x7f7f0000);
    for (int w = 0; w < 2; w++) {
        cr_expect_eq(bfloat16_round_by(float16_with_bits(0x7f7f7fff), words[w]), largest);
        cr_expect_eq(bfloat16_round_by(float16_with_bits(0xff7f8000), words[w]), -INFINITY);
        cr_expect_eq(float16_round_by(65519.996f, words[w]), FLOAT16_MAX);
        cr_expect_eq(float16_round_by(-65520, words[w]), -INFINITY);
    }
}

static void check_parts(bool to_float16, const char *arithmetic, const float *x, const float *whole)
{
    static const int ends[] = {1, 2, 1027, 16391, 40000, COUNT};
    float *y = malloc(COUNT * sizeof *y);
    for (int i = 0, first = 0; i < 6; first = ends[i++]) {
        struct stochastic_round op = rounding(to_float16, ends[i] - first, x + first, y + first);
        op.first = first;
        check_run(OPERATION_stochastic_round, &op, 1 + i % 3, arithmetic);
    }
    cr_expect_eq(memcmp(y, whole, COUNT * sizeof *y), 0, "%s", arithmetic);
    free(y);
}

Test(stochastic_rounding, parts_have_the_bits_of_the_whole)
{
    static const char *const sets[] = {"avx512", "avx2", "portable"};
    float *x = check_numbers(COUNT, 1), *y = malloc(COUNT * sizeof *y);
    for (int half = 0; half <= 1; half++) {
        const struct stochastic_round op = rounding(half, COUNT, x, y);
        check_run(OPERATION_stochastic_round, &op, 1, NULL);
        for (int s = 0; s < 3; s++)
            if (gemm_kernel_choose(sets[s]))
                check_parts(half, sets[s], x, y);
    }
    free(x), free(y);
}

Test(stochastic_rounding, other_keys_and_steps_draw_others)
{
    float *x = check_numbers(COUNT, 1), *y = malloc(COUNT * sizeof *y), *z = malloc(COUNT * sizeof *z);
    const struct step_values values = {.pass = 4};
    struct stochastic_round ops[3] = {rounding(false, COUNT, x, z), rounding(false, COUNT, x, z),
                                      rounding(false, COUNT, x, z)};
    const struct stochastic_round op = rounding(false, COUNT, x, y);
    check_run(OPERATION_stochastic_round, &op, 2, NULL);
    ops[0].key = 8;
    ops[1].step = 4;
    ops[2].first = 4;
    for (int i = 0; i < 3; i++) {
        int same = 0;
        check_run(OPERATION_stochastic_round, &ops[i], 2, NULL);
        for (int k = 0; k < COUNT; k++)
            same += y[k] == z[k];
        cr_expect(same > COUNT / 2 && same < COUNT * 3 / 4, "%d: %d of %d are the same", i, same, COUNT); /* 2/3 */
    }
    check_run(OPERATION_stochastic_round, &ops[1], 2, NULL);
    ops[0] = rounding(false, COUNT, x, y);
    ops[0].values = &values; /* in place of the step */
    check_run(OPERATION_stochastic_round, &ops[0], 2, NULL);
    cr_expect_eq(memcmp(y, z, COUNT * sizeof *y), 0);
    free(x), free(y), free(z);
}
