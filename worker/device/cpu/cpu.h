/* SPDX-License-Identifier: Apache-2.0
 *
 * What the CPU's operations share. Each operation is a function
 * `cpu_<name>(call, arguments)` in a file of its own; it cuts its work into
 * pieces by shape and runs them on the team.
 */
#ifndef COXSWAIN_DEVICE_CPU_CPU_H
#define COXSWAIN_DEVICE_CPU_CPU_H

#include "common/error.h"
#include "worker/device/cpu/gemm_kernel.h"
#include "worker/device/cpu/team.h"
#include "worker/device/operations.h"

struct cpu_call {
    struct team *team;
    const struct gemm_kernel *kernel;
    struct error *error; /* filled by an operation that fails */
};

/* Scratch of each thread. */
#define CPU_SCRATCH_BYTES (768 * 1024)

#define X(name) void cpu_##name(const struct cpu_call *call, const struct name *arguments);
DEVICE_OPERATIONS(X)
#undef X

/* Elementwise loops: compiled for each instruction set, chosen at load time. No contraction to fused multiply-add
 * happens in them (ISO C semantics), so their bits are the same everywhere. (Not under the thread sanitizer, which is
 * not ready yet when the choice is made.) */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__SANITIZE_ADDRESS__)
/* GCC 12 keeps 64-byte vectors unaligned on the stack with which the sanitizer finds uses after a return. */
#define CPU_VECTORISED __attribute__((target_clones("avx2", "default"), optimize("O3")))
#elif defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define CPU_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define CPU_VECTORISED
#endif

/* Elementwise operations are cut into runs of this many elements. */
#define CPU_RUN 16384
static inline int64_t cpu_runs(int64_t count)
{
    return (count + CPU_RUN - 1) / CPU_RUN;
}
static inline int64_t cpu_run_length(int64_t count, int64_t run)
{
    int64_t left = count - run * CPU_RUN;
    return left < CPU_RUN ? left : CPU_RUN;
}

#endif
