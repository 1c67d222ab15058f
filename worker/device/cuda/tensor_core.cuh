/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of small tiles of bfloat16 on tensor cores, by a whole warp. A tile is
 * spread over the lanes as mma.m16n8k16 has it (PTX ISA, "Matrix Fragments"): lane
 * l, with g = l / 4 and t = l % 4, holds pairs of neighbours along the inner axis
 * of the factors, and of the sums[16,8] rows g (two) and g + 8 (two), columns 2 t
 * and 2 t + 1.
 */
#ifndef COXSWAIN_DEVICE_CUDA_TENSOR_CORE_CUH
#define COXSWAIN_DEVICE_CUDA_TENSOR_CORE_CUH

#include "worker/device/cuda/stored.cuh"

/* Two bfloat16, the first in the lower half; read from and written to where single ones lie. */
#ifdef __CUDACC__
typedef uint32_t bfloat16_pair;
#else
typedef uint32_t __attribute__((may_alias)) bfloat16_pair;
#endif

static __device__ inline uint32_t pair_at(const struct bfloat16 *place)
{
    return *(const bfloat16_pair *)place;
}

static __device__ inline uint32_t pair_of(float first, float second)
{
    struct bfloat16 low, high;
    narrow(first, &low);
    narrow(second, &high);
    return (uint32_t)high.bits << 16 | low.bits;
}

/* The left factor [16,16] from row-major memory. */
static __device__ inline void read_left(const struct bfloat16 *from, int pitch, int lane, uint32_t left[4])
{
    from += lane / 4 * pitch + lane % 4 * 2;
    left[0] = pair_at(from);
    left[1] = pair_at(from + 8 * pitch);
    left[2] = pair_at(from + 8);
    left[3] = pair_at(from + 8 * pitch + 8);
}

/* The right factor [16,8] from memory where its columns are rows. */
static __device__ inline void read_right(const struct bfloat16 *from, int pitch, int lane, uint32_t right[2])
{
    from += lane / 4 * pitch + lane % 4 * 2;
    right[0] = pair_at(from);
    right[1] = pair_at(from + 8);
}

/* Sums of two tiles side by side, [16,16], as a left factor. */
static __device__ inline void sums_as_left(const float first[4], const float second[4], uint32_t left[4])
{
    left[0] = pair_of(first[0], first[1]);
    left[1] = pair_of(first[2], first[3]);
    left[2] = pair_of(second[0], second[1]);
    left[3] = pair_of(second[2], second[3]);
}

/* sums += left right, in float32 */
static __device__ inline void multiply_tile(float sums[4], const uint32_t left[4], const uint32_t right[2])
{
#ifdef __CUDACC__
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
#else
    emulated_multiply_tile(sums, left, right);
#endif
}

#endif
