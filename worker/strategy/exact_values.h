/* SPDX-License-Identifier: Apache-2.0
 *
 * Doubles through a collective that adds floats, without losing a bit: each rank
 * puts its own at its place, as four limbs of 16 bits, which floats hold exactly,
 * and zeros elsewhere; after the reduction all ranks add the places in order.
 */
#ifndef COXSWAIN_STRATEGY_EXACT_VALUES_H
#define COXSWAIN_STRATEGY_EXACT_VALUES_H

#include <stddef.h>

/* Floats that `count` values of each of `size` ranks take. */
size_t exact_values_floats(size_t count, unsigned size);
/* `places` must be zeros. */
void exact_values_put(const double *values, size_t count, unsigned rank, float *places);
/* ret_values[i] becomes the sum over all ranks, rank by rank. */
void exact_values_sum(const float *places, size_t count, unsigned size, double *ret_values);

#endif
