/* SPDX-License-Identifier: Apache-2.0
 *
 * The language of kernels for emulated GPUs: what nvcc knows by itself, as C++ for an ordinary compiler. A kernel is a function and a
 * thread of a block is a fiber (block.h), so shared memory of a block is thread-local to the thread that runs the block. Compiled with
 * -include of this file.
 */
#ifndef COXSWAIN_TESTS_GPU_EMULATED_CUDA_RUNTIME_H
#define COXSWAIN_TESTS_GPU_EMULATED_CUDA_RUNTIME_H

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/emulated/block.h"

#define __global__
#define __device__
#define __host__
#define __shared__ thread_local
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)

struct float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z)
    {
    }
};

#define __syncthreads() emulated_block_barrier()
#define __threadfence_system() __atomic_thread_fence(__ATOMIC_SEQ_CST)

template <typename Number> static inline Number __shfl_xor_sync(unsigned lanes, Number x, int distance)
{
    static_assert(sizeof(Number) <= sizeof(uint64_t), "a lane hands over eight bytes");
    uint64_t word = 0;
    memcpy(&word, &x, sizeof x);
    word = emulated_exchange(lanes, word, emulated_lane() ^ (unsigned)distance);
    memcpy(&x, &word, sizeof x);
    return x;
}
static inline unsigned __ballot_sync(unsigned lanes, bool predicate)
{
    return emulated_ballot(lanes, predicate);
}
static inline void __syncwarp(unsigned lanes = ~0u)
{
    (void)emulated_ballot(lanes, true);
}
static inline int __ffs(int word)
{
    return __builtin_ffs(word);
}

template <typename A, typename B> static inline auto min(A a, B b)
{
    return a < b ? a : b;
}
template <typename A, typename B> static inline auto max(A a, B b)
{
    return a > b ? a : b;
}

/* ---------------------------------------------------------------- launches */

typedef struct cudaLaunchConfig_st {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
} cudaLaunchConfig_t;

/* A kernel's arguments until it runs. It does not use the standard library. Each file has its own copy, since two files may have
 * different argument types with the same name. */
namespace
{
template <typename... Parameters> struct emulated_values;

template <> struct emulated_values<> {
    template <typename Kernel, typename... Before> void call(Kernel kernel, const Before &...before) const
    {
        kernel(before...);
    }
};

template <typename First, typename... Rest> struct emulated_values<First, Rest...> {
    First first;
    emulated_values<Rest...> rest;

    emulated_values(const First &first, const Rest &...rest) : first(first), rest{rest...}
    {
    }
    template <typename Kernel, typename... Before> void call(Kernel kernel, const Before &...before) const
    {
        rest.call(kernel, before..., first);
    }
};

template <typename... Parameters> struct emulated_arguments {
    void (*kernel)(Parameters...);
    emulated_values<Parameters...> values;

    static void run(void *context)
    {
        const auto *self = (const emulated_arguments *)context;
        self->values.call(self->kernel);
    }
};
} // namespace

template <typename... Parameters, typename... Arguments>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                                             const Arguments &...arguments)
{
    using held = emulated_arguments<Parameters...>;
    held job{kernel, emulated_values<Parameters...>(arguments...)};
    const struct emulated_grid grid = {
        {config->gridDim.x, config->gridDim.y, config->gridDim.z},
        {config->blockDim.x, config->blockDim.y, config->blockDim.z},
        config->dynamicSmemBytes,
        (void *)kernel,
        held::run,
        &job,
        sizeof job,
    };
    return emulated_launch(config->stream, &grid);
}

template <typename... Parameters>
static inline cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute, int value)
{
    return emulated_set_attribute((void *)kernel, attribute, value);
}

#endif
