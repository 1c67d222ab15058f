/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that the numbers of examples and initial weights are finite. A single NaN or infinity
 * makes all parameters NaN within a step, and its origin can then no longer be found.
 */
#ifndef COXSWAIN_DATA_FINITE_VALUES_H
#define COXSWAIN_DATA_FINITE_VALUES_H

#include <stdint.h>

#include "common/error.h"

/* ERROR_INVALID if a value is not finite; the message gives its number, where values[0] has the
 * number `first`. */
int finite_values_check(const float *values, int64_t first, int64_t count, struct error *error);

#endif
