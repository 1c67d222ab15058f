/* SPDX-License-Identifier: Apache-2.0
 *
 * A Parzen estimator of one parameter: the density of the values that some trials had, as a sum of kernels, one for each value and
 * one for all that is possible (the prior, with the weight of one value). Numbers have Gaussians that are cut off at the ends of
 * the range; a Gaussian is as wide as the distance to the value's farther neighbour, within bounds. Choices have a chance each. Of more
 * than 25 values the older ones count less.
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
