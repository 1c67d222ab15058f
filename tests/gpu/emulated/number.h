/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as NVIDIA's libraries find them in memory, and the part of them that a tensor core reads.
 */
#ifndef COXSWAIN_TESTS_GPU_EMULATED_NUMBER_H
#define COXSWAIN_TESTS_GPU_EMULATED_NUMBER_H

#include <cublas_v2.h>
#include <stdint.h>
#include <string.h>

#include "worker/device/bfloat16.h"
#include "worker/device/float16.h"

/* A matrix's number i; a bfloat16 is the upper half of a float32. */
static inline float number(const void *matrix, cudaDataType type, int64_t i)
{
    if (type == CUDA_R_32F)
        return ((const float *)matrix)[i];
    if (type == CUDA_R_16F)
        return float16_unpack(((const uint16_t *)matrix)[i]);
    const uint32_t bits = (uint32_t)((const uint16_t *)matrix)[i] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline void put(void *matrix, cudaDataType type, int64_t i, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (type == CUDA_R_32F)
        ((float *)matrix)[i] = value;
    else if (type == CUDA_R_16F)
        ((uint16_t *)matrix)[i] = float16_pack(float16_round(value));
    else
        ((uint16_t *)matrix)[i] = (uint16_t)(bfloat16_round_bits(bits) >> 16);
}

/* Keeps ten of the 23 bits behind the point. */
static inline float cut_to_tf32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= 0xffffe000u;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
