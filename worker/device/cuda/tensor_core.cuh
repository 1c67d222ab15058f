/* SPDX-License-Identifier: Apache-2.0
 *
 * Multiplies small tiles of two-byte values on tensor cores, one warp per tile. A tile is spread
 * over the lanes as in mma.m16n8k16 (PTX ISA, "Matrix Fragments"): lane l, with g = l / 4 and t =
 * l % 4, holds pairs of neighbours along the inner axis of the factors, and of the sums[16,8] rows
 * g (two) and g + 8 (two), columns 2 t and 2 t + 1.
 */
#ifndef COXSWAIN_DEVICE_CUDA_TENSOR_CORE_CUH
#define COXSWAIN_DEVICE_CUDA_TENSOR_CORE_CUH

#include "worker/device/cuda/async_copy.cuh"
#include "worker/device/cuda/stored.cuh"

/* Two values, the first in the lower half; used to read and write pairs in arrays of single
 * values. */
#ifdef __CUDACC__
typedef uint32_t value_pair;
#else
typedef uint32_t __attribute__((may_alias)) value_pair;
#endif

/* Rounds both to nearest. */
template <typename Stored> static __device__ inline uint32_t pair_of(float first, float second)
{
    Stored low, high;
    narrow(first, &low);
    narrow(second, &high);
    return (uint32_t)high.bits << 16 | low.bits;
}
#ifdef __CUDACC__
template <> __device__ inline uint32_t pair_of<struct bfloat16>(float first, float second)
{
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}
template <> __device__ inline uint32_t pair_of<struct float16>(float first, float second)
{
    uint32_t pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}
#endif

/* Reads a lane's part of four matrices [8,8] from shared memory: lane 8 i + j passes the address
 * of row j of matrix i, a multiple of 16 bytes. TURNED: of the transposed matrices. */
template <bool TURNED, typename Stored>
static __device__ inline void read_matrices(const Stored *row, uint32_t parts[4])
{
#ifndef __CUDACC__
    emulated_read_matrices(parts, row, TURNED);
#else
    if (TURNED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(parts[0]), "=r"(parts[1]), "=r"(parts[2]), "=r"(parts[3])
                     : "r"(shared_address(row)));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(parts[0]), "=r"(parts[1]), "=r"(parts[2]), "=r"(parts[3])
                     : "r"(shared_address(row)));
#endif
}

/* Reads a left factor [16,16], stored by rows. */
template <typename Stored>
static __device__ inline void read_left(const Stored *from, int pitch, int lane, uint32_t left[4])
{
    read_matrices<false>(from + lane % 16 * pitch + lane / 16 * 8, left);
}

/* Reads two right factors [16,8] side by side, stored by columns: right[0] and right[1] are the
 * first's. */
template <typename Stored>
static __device__ inline void read_right(const Stored *from, int pitch, int lane, uint32_t right[4])
{
    read_matrices<false>(from + (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 8, right);
}

/* The same, stored by rows. */
template <typename Stored>
static __device__ inline void read_right_turned(const Stored *from, int pitch, int lane, uint32_t right[4])
{
    read_matrices<true>(from + lane % 16 * pitch + lane / 16 * 8, right);
}

/* Converts the sums of two tiles side by side, [16,16], to a left factor. */
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
    asm("mma.sync.aligned.m16n8k16.row.col.f32." types ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "             \
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
