/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares what the CPU's forward and backward attention share: where the queries, keys, values and
 * outputs of one head of one example lie in memory, and how many query rows to process at a time so
 * that their scores fit a thread's scratch memory.
 */
#ifndef COXSWAIN_DEVICE_CPU_ATTENTION_H
#define COXSWAIN_DEVICE_CPU_ATTENTION_H

#include <math.h>

#include "worker/device/cpu/gemm.h"
#include "worker/device/cpu/lanes.h"

struct attention_head {
    int64_t width;              /* C / NH */
    int64_t qkv_row;            /* 3 C */
    int64_t query, key, value;  /* offsets into qkv, and into its gradient */
    int64_t output, output_row; /* offset into y, C */
    float scale;                /* 1 / sqrt(width) */
};

static inline struct attention_head attention_head(int64_t t, int64_t c, int64_t heads, int64_t piece)
{
    int64_t width = c / heads, example = piece / heads, head = piece % heads;
    int64_t query = example * t * 3 * c + head * width;
    return (struct attention_head){
        .width = width,
        .qkv_row = 3 * c,
        .query = query,
        .key = query + c,
        .value = query + 2 * c,
        .output = example * t * c + head * width,
        .output_row = c,
        .scale = 1.0f / sqrtf((float)width),
    };
}

/* Returns how many query rows to process at a time, at most 64: `matrices` score matrices of that many rows by T columns fit beside
 * gemm's scratch. The layer limits T (layer_attention.c) so that this is at least 1 for two matrices. */
static inline int64_t attention_rows(int64_t t, int64_t matrices)
{
    int64_t fitting = (CPU_SCRATCH_BYTES - GEMM_SCRATCH_BYTES) / (int64_t)sizeof(float) / (t * matrices);
    return fitting > 64 ? 64 : fitting;
}

/* Returns how many of a row's `keys` scores to process if only the first `seen` count: rounded
 * up to whole lanes, if the row is that long. */
static inline int64_t attention_end(int64_t seen, int64_t keys)
{
    int64_t whole = (seen + LANES - 1) / LANES * LANES;
    return whole < keys ? whole : keys;
}

#endif
