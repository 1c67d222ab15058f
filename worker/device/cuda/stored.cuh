/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes stored values (operations.h): kernels are templates over the stored type,
 * compute in float32, and access memory through `values`. Elementwise kernels handle 16 bytes at a
 * time.
 */
#ifndef COXSWAIN_DEVICE_CUDA_STORED_CUH
#define COXSWAIN_DEVICE_CUDA_STORED_CUH

#include "worker/device/bfloat16.h"
#include "worker/device/cuda/each.cuh"
#include "worker/device/float16.h"

#define VALUE_BYTES 16 /* handled by a thread at a time */

struct bfloat16 {
    uint16_t bits;
};
struct float16 {
    uint16_t bits;
};

static __device__ inline float widen(float x)
{
    return x;
}
static __device__ inline float widen(struct bfloat16 x)
{
    const uint32_t bits = (uint32_t)x.bits << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static __device__ inline float widen(struct float16 x)
{
#ifdef __CUDA_ARCH__
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
    return value;
#else
    return float16_unpack(x.bits);
#endif
}

static __device__ inline void narrow(float x, float *to)
{
    *to = x;
}
static __device__ inline void narrow(float x, struct bfloat16 *to)
{
#ifdef __CUDA_ARCH__
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to->bits) : "f"(x));
#else
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    to->bits = (uint16_t)(bfloat16_round_bits(bits) >> 16);
#endif
}

static __device__ inline void narrow(float x, struct float16 *to)
{
#ifdef __CUDA_ARCH__
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to->bits) : "f"(x));
#else
    to->bits = float16_pack(float16_round(x));
#endif
}

/* Returns whether x is positive once it is stored. The limit is half of the smallest stored
 * number; x equal to it is rounded to 0 (ties to even). */
template <typename Stored> static __device__ inline bool is_stored_positive(float x)
{
    return x > 0;
}
template <> __device__ inline bool is_stored_positive<struct bfloat16>(float x)
{
    return x > 0x1p-134f;
}
template <> __device__ inline bool is_stored_positive<struct float16>(float x)
{
    return x > 0x1p-25f;
}

/* Accesses the stored values that a pointer in an operation's arguments points to. */
template <typename Stored> struct values {
    Stored *start;

    __host__ __device__ explicit values(const float *memory) : start((Stored *)memory)
    {
    }
    __device__ float operator[](int64_t i) const
    {
        return widen(start[i]);
    }
    __device__ void put(int64_t i, float value) const
    {
        narrow(value, start + i);
    }
    __device__ values operator+(int64_t elements) const
    {
        return values((const float *)(start + elements));
    }
};

/* Calls function<Stored>(arguments…) for the type in which the call's values are stored. */
#define BY_STORED(call, function, ...)                                                                                 \
    ((call)->stored == STORED_BFLOAT16  ? function<struct bfloat16>(__VA_ARGS__)                                       \
     : (call)->stored == STORED_FLOAT16 ? function<struct float16>(__VA_ARGS__)                                        \
                                        : function<float>(__VA_ARGS__))
/* Chooses the kernel for that type. */
#define KERNEL_FOR(call, kernel)                                                                                       \
    ((call)->stored == STORED_BFLOAT16  ? kernel<struct bfloat16>                                                      \
     : (call)->stored == STORED_FLOAT16 ? kernel<struct float16>                                                       \
                                        : kernel<float>)

/* ---------------------------------------------------------------- 16 bytes at a time */

template <typename Stored> struct alignas(VALUE_BYTES) element_pack {
    static const int LENGTH = VALUE_BYTES / (int)sizeof(Stored);
    Stored at[LENGTH];
};

/* Returns whether whole packs can be read and written at all these addresses. */
template <typename... Places> static inline bool are_aligned(const Places *...places)
{
    return ((uintptr_t)0 | ... | (uintptr_t)places) % VALUE_BYTES == 0;
}

/* Reads a pack of elements: `left` of them if that is less than a pack, with zeros after them.
 * ALIGNED: reads a whole pack at once; it must be complete and aligned. */
template <bool ALIGNED, typename Stored>
static __device__ inline element_pack<Stored> read_pack(const Stored *from, int64_t left)
{
    element_pack<Stored> pack = {};
    if constexpr (ALIGNED) {
        pack = *(const element_pack<Stored> *)from;
    } else {
#pragma unroll
        for (int i = 0; i < pack.LENGTH; i++)
            if (i < left)
                pack.at[i] = from[i];
    }
    return pack;
}

template <bool ALIGNED, typename Stored>
static __device__ inline void write_pack(Stored *to, const element_pack<Stored> &pack, int64_t left)
{
    if constexpr (ALIGNED) {
        *(element_pack<Stored> *)to = pack;
    } else {
#pragma unroll
        for (int i = 0; i < pack.LENGTH; i++)
            if (i < left)
                to[i] = pack.at[i];
    }
}

/* The same for float32 parameters that belong to a pack's elements. */
template <bool ALIGNED, int LENGTH> static __device__ inline void read_numbers(const float *from, int64_t left, float to[LENGTH])
{
    const int step = element_pack<float>::LENGTH;
#pragma unroll
    for (int i = 0; i < LENGTH; i += step) {
        const element_pack<float> some = read_pack<ALIGNED>(from + i, left - i);
#pragma unroll
        for (int k = 0; k < step; k++)
            to[i + k] = some.at[k];
    }
}

template <bool ALIGNED, int LENGTH>
static __device__ inline void write_numbers(float *to, const float from[LENGTH], int64_t left)
{
    const int step = element_pack<float>::LENGTH;
#pragma unroll
    for (int i = 0; i < LENGTH; i += step) {
        element_pack<float> some;
#pragma unroll
        for (int k = 0; k < step; k++)
            some.at[k] = from[i + k];
        write_pack<ALIGNED>(to + i, some, left - i);
    }
}

/* ---------------------------------------------------------------- elementwise */

/* Computes y[i] = map(a[i], b[i], i). y may be a or b; b NULL: the same as a. */
struct element_job {
    int64_t count;
    const float *a, *b;
    float *y;
    bool aligned; /* all three are aligned to 16 bytes */
};

template <typename Stored, typename Map> static __global__ void map_pack(struct element_job job, Map map)
{
    typedef struct element_pack<Stored> pack;
    EACH(number, (job.count + pack::LENGTH - 1) / pack::LENGTH);
    const int64_t first = number * pack::LENGTH;
    const values<Stored> a(job.a), b(job.b), y(job.y);
    if (!job.aligned || first + pack::LENGTH > job.count) {
        for (int64_t i = first; i < first + pack::LENGTH && i < job.count; i++)
            y.put(i, map(a[i], b[i], i));
        return;
    }
    const pack some = *(const pack *)(a.start + first), others = *(const pack *)(b.start + first);
    pack result;
#pragma unroll
    for (int i = 0; i < pack::LENGTH; i++)
        narrow(map(widen(some.at[i]), widen(others.at[i]), first + i), &result.at[i]);
    *(pack *)(y.start + first) = result;
}

template <typename Stored, typename Map>
static void launch_map_of(const struct cuda_call *call, const struct element_job &job, const Map &map)
{
    const int64_t packs = (job.count + element_pack<Stored>::LENGTH - 1) / element_pack<Stored>::LENGTH;
    launch_kernel(call, (unsigned)((packs + EACH_THREADS - 1) / EACH_THREADS), EACH_THREADS, 0, map_pack<Stored, Map>,
                  job, map);
}

template <typename Map>
static void launch_map(const struct cuda_call *call, int64_t count, const float *a, const float *b, float *y,
                       const Map &map)
{
    b = b ? b : a;
    const struct element_job job = {count, a, b, y, are_aligned(a, b, y)};
    if (count == 0)
        return;
    if (call->stored == STORED_BFLOAT16)
        launch_map_of<struct bfloat16>(call, job, map);
    else if (call->stored == STORED_FLOAT16)
        launch_map_of<struct float16>(call, job, map);
    else
        launch_map_of<float>(call, job, map);
}

#endif
