/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums doubles exactly through a collective that adds only floats.
 *
 * Each rank writes its values to its own places, as four limbs of 16 bits, which a float represents
 * exactly; all other places are zeros. After the reduction, each rank adds the values in rank
 * order, so that all ranks get the same bits.
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
