/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/parzen.h"

#include <criterion/criterion.h>
#include <math.h>

#define SLICES 20000

static double density_at(const struct parzen *parzen, double value)
{
    return exp(parzen_log_density(parzen, &value));
}

/* Of one parameter. */
static struct parzen *parzen_of(const struct parzen_space *space, const double *values, size_t count)
{
    const double *points[50];
    for (size_t i = 0; i < count; i++)
        points[i] = &values[i];
    return parzen_new(space, 1, points, count);
}

static double draw(const struct parzen *parzen, double kernel, double place)
{
    double drawn;
    parzen_draw(parzen, (double[]){kernel, place}, &drawn);
    return drawn;
}

static double mass_between(const struct parzen *parzen, double low, double high)
{
    double sum = 0, slice = (high - low) / SLICES;
    for (int i = 0; i < SLICES; i++)
        sum += density_at(parzen, low + (i + 0.5) * slice) * slice;
    return sum;
}

Test(parzen, a_density_over_the_range)
{
    static const double values[] = {-1.9, -1.7, 2.5, -1.8, 3};
    struct parzen_space space = {.low = -2, .high = 3};
    for (size_t count = 0; count <= 5; count++) {
        struct parzen *parzen = parzen_of(&space, values, count);
        cr_expect_float_eq(mass_between(parzen, -2, 3), 1, 1e-4, "%g with %zu values", mass_between(parzen, -2, 3),
                           count);
        parzen_free(parzen);
    }
}

Test(parzen, chances_of_whole_numbers_and_of_choices)
{
    static const double values[] = {4, 4, 3, 4};
    struct parzen_space whole = {.low = 2, .high = 6, .step = 1}, choices = {.choices = 7};
    struct parzen *numbers = parzen_of(&whole, values, 4), *words = parzen_of(&choices, values, 4);
    double sum = 0, other_sum = 0;
    for (int i = 0; i < 7; i++) {
        sum += i >= 2 ? density_at(numbers, i) : 0;
        other_sum += density_at(words, i);
    }
    cr_expect_float_eq(sum, 1, 1e-9, "%g", sum);
    cr_expect_float_eq(other_sum, 1, 1e-9, "%g", other_sum);
    cr_expect(density_at(numbers, 4) > density_at(numbers, 3) && density_at(numbers, 3) > density_at(numbers, 6));
    /* Five kernels of equal weight; a value's has 1/5 for each choice and 1 for its own, of 12/5 in all. */
    cr_expect_float_eq(density_at(words, 4), (3 * 0.5 + 1 * (1.0 / 12) + 1.0 / 7) / 5, 1e-12);
    cr_expect_float_eq(density_at(words, 0), (4 * (1.0 / 12) + 1.0 / 7) / 5, 1e-12);
    parzen_free(numbers);
    parzen_free(words);
}

/* Two kernels: of the value, as wide as to the farther end of the range, and of the prior, as wide as the range. */
Test(parzen, the_density_of_one_value)
{
    static const double values[] = {0.1};
    struct parzen_space space = {.low = 0, .high = 1};
    struct parzen *parzen = parzen_of(&space, values, 1);
    double narrow = (erf(M_SQRT1_2) + erf(0.1 / 0.9 * M_SQRT1_2)) / 2, wide = erf(0.5 / M_SQRT2);
    double peak = 1 / sqrt(2 * M_PI);
    cr_expect_float_eq(density_at(parzen, 0.1), (peak / 0.9 / narrow + peak * exp(-0.08) / wide) / 2, 1e-9);
    parzen_free(parzen);
}

Test(parzen, older_values_count_less)
{
    double values[40];
    struct parzen_space space = {.choices = 2};
    for (int i = 0; i < 40; i++)
        values[i] = i < 15 ? 0 : 1;
    struct parzen *parzen = parzen_of(&space, values, 40);
    double faded = 0;
    for (int i = 0; i < 15; i++)
        faded += 1.0 / 40 + (1 - 1.0 / 40) * i / 14;
    double sum = faded + 25 + 1, small = 1.0 / 41, whole = 1 + 2 * small;
    cr_expect_float_eq(density_at(parzen, 0), (faded * (1 + small) + 25 * small) / whole / sum + 0.5 / sum, 1e-12);
    parzen_free(parzen);
}

/* The share of what is drawn below a number is the density's mass there. */
Test(parzen, draws_follow_the_density)
{
    static const double values[] = {0.2, 0.25, 0.9, 0.3};
    struct parzen_space space = {.low = 0, .high = 1};
    struct parzen *parzen = parzen_of(&space, values, 4);
    int below = 0;
    for (int i = 0; i < 100; i++)
        for (int j = 0; j < 100; j++) {
            double drawn = draw(parzen, (i + 0.5) / 100, (j + 0.5) / 100);
            cr_assert(drawn >= 0 && drawn <= 1);
            below += drawn < 0.4;
        }
    double mass = mass_between(parzen, 0, 0.4);
    cr_expect_float_eq(below / 1e4, mass, 0.005, "%g, not %g", below / 1e4, mass);
    parzen_free(parzen);
}

Test(parzen, draws_reach_the_ends_and_no_farther)
{
    static const double values[] = {1, 3};
    struct parzen_space whole = {.low = 1, .high = 3, .step = 1}, lone = {.low = 7, .high = 7, .step = 1};
    struct parzen *parzen = parzen_of(&whole, values, 2), *single = parzen_of(&lone, NULL, 0);
    cr_expect_eq(draw(parzen, 0, 0), 1);
    cr_expect_eq(draw(parzen, 0.9999, 0.9999999), 3);
    cr_expect_eq(draw(single, 0.5, 0.3), 7);
    cr_expect_float_eq(density_at(single, 7), 1, 1e-12);
    parzen_free(parzen);
    parzen_free(single);
}

/* Numbers of parameters may be that large: differences of the integral must not vanish. */
Test(parzen, a_density_of_very_many_whole_numbers)
{
    static const double values[] = {-1e12, 5e11};
    struct parzen_space space = {.low = -1e12, .high = 1e12, .step = 1};
    struct parzen *parzen = parzen_of(&space, values, 2);
    cr_expect(density_at(parzen, 1e12) > 0 && density_at(parzen, -1e12) > 0);
    parzen_free(parzen);
}

/* ---------------------------------------------------------------- several parameters */

static const struct parzen_space both[2] = {{.low = 0, .high = 1}, {.choices = 3}};

/* Values near 0 go with choice 2, those near 1 with choice 0. */
static struct parzen *pairs_new(void)
{
    static const double points[4][2] = {{0.05, 2}, {0.95, 0}, {0.1, 2}, {0.9, 0}};
    return parzen_new(both, 2, (const double *[]){points[0], points[1], points[2], points[3]}, 4);
}

Test(parzen, a_joint_density_knows_what_goes_together)
{
    struct parzen *parzen = pairs_new();
    double together = parzen_log_density(parzen, (double[]){0.05, 2});
    double crossed = parzen_log_density(parzen, (double[]){0.05, 0});
    double sum = 0, alone = 0;
    for (int choice = 0; choice < 3; choice++)
        for (int i = 0; i < SLICES; i++)
            sum += exp(parzen_log_density(parzen, (double[]){(i + 0.5) / SLICES, choice})) / SLICES;
    for (int choice = 0; choice < 3; choice++)
        alone += exp(parzen_log_density(parzen, (double[]){0.3, choice}));
    cr_expect_gt(together, crossed + log(2));
    cr_expect_float_eq(sum, 1, 1e-6, "%g", sum);
    cr_expect_float_eq(exp(parzen_log_density(parzen, (double[]){0.3, NAN})), alone, 1e-9, "%g", alone);
    parzen_free(parzen);
}

Test(parzen, draws_of_several_parameters_are_of_one_kernel)
{
    struct parzen *parzen = pairs_new();
    int together = 0, crossed = 0;
    for (int i = 0; i < 50; i++)
        for (int j = 0; j < 50; j++)
            for (int k = 0; k < 50; k++) {
                double point[2];
                parzen_draw(parzen, (double[]){(i + 0.5) / 50, (j + 0.5) / 50, (k + 0.5) / 50}, point);
                together += point[0] < 0.25 && point[1] == 2;
                crossed += point[0] < 0.25 && point[1] == 0;
            }
    double mass = 0;
    for (int i = 0; i < SLICES; i++)
        mass += exp(parzen_log_density(parzen, (double[]){(i + 0.5) / SLICES / 4, 2})) / SLICES / 4;
    cr_expect_float_eq(together / 125e3, mass, 0.005, "%g, not %g", together / 125e3, mass);
    cr_expect_gt(together, 2 * crossed, "%d and %d", together, crossed);
    parzen_free(parzen);
}

/* A trial without the parameter is one of all values to it, like the prior; the widths know of the other trials only. */
Test(parzen, a_trial_without_a_parameter_has_the_priors_factor)
{
    static const double points[2][2] = {{0.1, NAN}, {NAN, 1}};
    struct parzen *parzen = parzen_new(both, 2, (const double *[]){points[0], points[1]}, 2);
    struct parzen *one = parzen_of(&both[0], &points[0][0], 1), *prior = parzen_of(&both[0], NULL, 0);
    double expected = (density_at(one, 0.1) * 2 + density_at(prior, 0.1)) / 3;
    cr_expect_float_eq(exp(parzen_log_density(parzen, (double[]){0.1, NAN})), expected, 1e-12);
    /* One trial had a choice: its kernel gives it three parts in five, and one each to the other two. */
    cr_expect_float_eq(exp(parzen_log_density(parzen, (double[]){NAN, 1})), (0.6 + 2 / 3.0) / 3, 1e-12);
    cr_expect_float_eq(exp(parzen_log_density(parzen, (double[]){NAN, 0})), (0.2 + 2 / 3.0) / 3, 1e-12);
    parzen_free(parzen);
    parzen_free(one);
    parzen_free(prior);
}

/* As many parameters as a sweep may have, each with far more values than a double can tell apart: their product is below all doubles. */
Test(parzen, a_density_that_is_too_small_for_a_number)
{
    struct parzen_space spaces[32];
    double point[32], far[32];
    for (int i = 0; i < 32; i++) {
        spaces[i] = (struct parzen_space){.low = -1e12, .high = 1e12, .step = 1};
        point[i] = -1e12;
        far[i] = 1e12;
    }
    struct parzen *parzen = parzen_new(spaces, 32, (const double *[]){point}, 1);
    double near = parzen_log_density(parzen, point), away = parzen_log_density(parzen, far);
    cr_expect(isfinite(near) && isfinite(away) && exp(near) == 0 && near > away, "%g and %g", near, away);
    parzen_free(parzen);
}
