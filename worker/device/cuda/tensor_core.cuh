/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of small tiles of values in two bytes on tensor cores, by a whole warp. A tile is
 * spread over the lanes as mma.m16n8k16 has it (PTX ISA, "Matrix Fragments"): lane
 * l, with g = l / 4 and t = l % 4, holds pairs of neighbours along the inner axis
 * of the factors, and of the sums[16,8] rows g (two) and g + 8 (two), columns 2 t
 * and 2 t + 1.
 */
#ifndef COXSWAIN_DEVICE_CUDA_TENSOR_CORE_CUH
#define COXSWAIN_DEVICE_CUDA_TENSOR_CORE_CUH

#include "worker/device/cuda/stored.cuh"

/* Two values, the first in the lower half; read from and written to where single ones lie. */
#ifdef __CUDACC__
typedef uint32_t value_pair;
#else
typedef uint32_t __attribute__((may_alias)) value_pair;
#endif

template <typename Stored> static __device__ inline uint32_t pair_at(const Stored *place)
{
    return *(const value_pair *)place;
}

template <typename Stored> static __device__ inline uint32_t pair_of(float first, float second)
{
    Stored low, high;
    narrow(first, &low);
    narrow(second, &high);
    return (uint32_t)high.bits << 16 | low.bits;
}

/* The left factor [16,16] from row-major memory. */
template <typename Stored> static __device__ inline void read_left(const Stored *from, int pitch, int lane, uint32_t left[4])
{
    from += lane / 4 * pitch + lane % 4 * 2;
    left[0] = pair_at(from);
    left[1] = pair_at(from + 8 * pitch);
    left[2] = pair_at(from + 8);
    left[3] = pair_at(from + 8 * pitch + 8);
}

/* The right factor [16,8] from memory where its columns are rows. */
template <typename Stored> static __device__ inline void read_right(const Stored *from, int pitch, int lane, uint32_t right[2])
{
    from += lane / 4 * pitch + lane % 4 * 2;
    right[0] = pair_at(from);
    right[1] = pair_at(from + 8);
}

/* Sums of two tiles side by side, [16,16], as a left factor. */
template <typename Stored> static __device__ inline void sums_as_left(const float first[4], const float second[4], uint32_t left[4])
{
    left[0] = pair_of<Stored>(first[0], first[1]);
    left[1] = pair_of<Stored>(first[2], first[3]);
    left[2] = pair_of<Stored>(second[0], second[1]);
    left[3] = pair_of<Stored>(second[2], second[3]);
}

/* sums += left right, in float32 */
template <typename Stored>
static __device__ inline void multiply_tile(float sums[4], const uint32_t left[4], const uint32_t right[2]);

#ifdef __CUDACC__
#define MULTIPLY_TILE(types)                                                                                           \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." types ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "             \
                 "{%8, %9}, {%0, %1, %2, %3};"                                                                          \
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])                                           \
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]))
#else
#define MULTIPLY_TILE(types) emulated_multiply_tile(sums, left, right, types)
#endif

template <>
__device__ inline void multiply_tile<struct bfloat16>(float sums[4], const uint32_t left[4], const uint32_t right[2])
{
    MULTIPLY_TILE("bf16.bf16");
}
template <>
__device__ inline void multiply_tile<struct float16>(float sums[4], const uint32_t left[4], const uint32_t right[2])
{
    MULTIPLY_TILE("f16.f16");
}

#endif
