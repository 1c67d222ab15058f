/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers that examples or initial weights bring are finite: one NaN or infinity
 * makes all parameters NaN within a step, before anybody can tell whose it was.
 */
#ifndef COXSWAIN_DATA_FINITE_VALUES_H
#define COXSWAIN_DATA_FINITE_VALUES_H

#include <stdint.h>

#include "common/error.h"

/* ERROR_INVALID names the one of `values`, which are numbered from `first` on, that is not finite. */
int finite_values_check(const float *values, int64_t first, int64_t count, struct error *error);

#endif
