/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data/finite_values.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "common/vectorised.h"

#define EXPONENT 0x7f800000u

/* Without a branch in the loop, which would keep it from vectors. */
VECTORISED static bool are_finite(const float *values, int64_t count)
{
    uint32_t wrong = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, values + i, sizeof bits);
        wrong |= (bits & EXPONENT) == EXPONENT;
    }
    return wrong == 0;
}

int finite_values_check(const float *values, int64_t first, int64_t count, struct error *error)
{
    int64_t i = 0;
    if (are_finite(values, count))
        return 0;
    while (isfinite(values[i]))
        i++;
    return error_set(error, ERROR_INVALID, "value %lld is %f, which is not a finite number", (long long)(first + i),
                     (double)values[i]);
}
