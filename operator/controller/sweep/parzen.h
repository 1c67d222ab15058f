/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimates the joint probability density of the parameters of a sweep from the values that some of its trials had (a Parzen
 * estimator); tpe.h draws from it and compares two of them. The density is a weighted sum of kernels: one for each trial, and one for
 * the whole space (the prior, with the weight of one trial). A kernel is a product with one factor for each parameter, so the density
 * is high where values occurred together. The factors are these (Bergstra et al. 2011; Watanabe 2023, "Tree-Structured Parzen Estimator:
 * Understanding Its Algorithm Components and Their Roles for Better Empirical Performance"):
 *
 * - For a range, a Gaussian around the trial's value, cut off at the ends of the range. It is as wide as the distance to the farther one
 *   of the two neighbours among the values, within bounds. The prior's is as wide as the range.
 * - For a list of choices, a probability for each: the trial's own choice has most of it, the more trials there are. The prior's are equal.
 * - A trial in which the parameter was not tried has the factor of the prior.
 *
 * Of more than 25 trials the older ones weigh less. The result depends only on the arguments: random numbers are passed in.
 */
#ifndef COXSWAIN_CONTROLLER_PARZEN_H
#define COXSWAIN_CONTROLLER_PARZEN_H

#include <stddef.h>

/* The values that a parameter can have. */
struct parzen_space {
    size_t choices;   /* the numbers below it, which have no order; 0: a range */
    double low, high; /* the range, ends included */
    double step;      /* 1: its whole numbers only; 0: all numbers */
};

struct parzen;

/* A point has a value of each parameter: a number in its space, or NAN if the parameter is not tried. `points` are those of the trials, the
 * oldest first. Both arrays may go after the call. */
struct parzen *parzen_new(const struct parzen_space *spaces, size_t parameters, const double *const *points,
                          size_t count);
void parzen_free(struct parzen *parzen);

/* Draws a point, with a value of each parameter. `draws` are one number more than parameters, uniform in [0, 1). */
void parzen_draw(const struct parzen *parzen, const double *draws, double *ret_point);
/* Returns the logarithm of the density of the parameters that the point has, whatever the others are; for choices and whole numbers the
 * density is a probability. It is finite in the whole space. */
double parzen_log_density(const struct parzen *parzen, const double *point);

#endif
