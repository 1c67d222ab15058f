/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimates the probability density of one parameter from the values that some trials of a sweep
 * had (a Parzen estimator); tpe.h draws from it and compares two of them. The density is a sum of
 * kernels: one for each value, and one for the whole space (the prior, with the weight of one
 * value). For ranges, the kernels are Gaussians that are cut off at the ends of the range; each is
 * as wide as the distance to the value's farther neighbour, within bounds. For a list of choices,
 * each choice has a probability. Of more than 25 values the older ones weigh less. The result
 * depends only on the arguments: random numbers are passed in.
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

/* `values` lie in the space, the oldest first. */
struct parzen *parzen_new(const struct parzen_space *space, const double *values, size_t count);
void parzen_free(struct parzen *parzen);

/* Returns a value drawn from the density. `kernel` and `place` are uniform in [0, 1). */
double parzen_draw(const struct parzen *parzen, double kernel, double place);
/* Returns the logarithm of the density, or of the chance of a choice or whole number; finite in the whole space. */
double parzen_log_density(const struct parzen *parzen, double value);

#endif
