/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/exact_values.h"

#include <stdint.h>
#include <string.h>

#define LIMBS 4

size_t exact_values_floats(size_t count, unsigned size)
{
    return count * LIMBS * size;
}

void exact_values_put(const double *values, size_t count, unsigned rank, float *places)
{
    float *own = places + exact_values_floats(count, rank);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof(bits));
        for (unsigned limb = 0; limb < LIMBS; limb++)
            own[i * LIMBS + limb] = (float)((bits >> (16 * limb)) & 0xffff);
    }
}

static double get_limbs(const float *place)
{
    uint64_t bits = 0;
    for (unsigned limb = 0; limb < LIMBS; limb++)
        bits |= (uint64_t)place[limb] << (16 * limb);
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

void exact_values_sum(const float *places, size_t count, unsigned size, double *ret_values)
{
    for (size_t i = 0; i < count; i++) {
        ret_values[i] = 0;
        for (unsigned rank = 0; rank < size; rank++)
            ret_values[i] += get_limbs(places + exact_values_floats(count, rank) + i * LIMBS);
    }
}
