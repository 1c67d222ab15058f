/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums doubles over all ranks through a collective that adds only floats, so that every rank gets the same bits.
 * Strategies use it for small results, such as losses of an evaluation.
 *
 * Each rank writes its values to its own places, as four limbs of 16 bits, which a float
 * represents exactly; all other places are zeros. So the reduction brings every rank's values to
 * all ranks unchanged. Then each rank adds them in rank order, with the usual rounding of doubles.
 */
#ifndef COXSWAIN_STRATEGY_EXACT_VALUES_H
#define COXSWAIN_STRATEGY_EXACT_VALUES_H

#include <stddef.h>

/* Returns how many floats `count` values from each of `size` ranks take. */
size_t exact_values_floats(size_t count, unsigned size);
/* Writes this rank's values to its own places. `places` must be zeroed by the caller. */
void exact_values_put(const double *values, size_t count, unsigned rank, float *places);
/* Sets ret_values[i] to the sum of value i over all ranks, added in rank order. */
void exact_values_sum(const float *places, size_t count, unsigned size, double *ret_values);

#endif
