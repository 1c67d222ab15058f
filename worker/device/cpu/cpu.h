/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the CPU's operations and what they share. Each operation of operations.h is a function
 * `cpu_<name>(call, arguments)`: it cuts its work into pieces by shape alone and runs them on the
 * device's threads (team.h). Large operations have a file each; elementwise.c, copies.c and
 * step_values.c hold the small ones. An operation that fails sets call->error.
 */
#ifndef COXSWAIN_DEVICE_CPU_CPU_H
#define COXSWAIN_DEVICE_CPU_CPU_H

#include "common/error.h"
#include "common/vectorised.h"
#include "worker/device/cpu/gemm_kernel.h"
#include "worker/device/cpu/team.h"
#include "worker/device/operations.h"

struct cpu_call {
    struct team *team;
    const struct gemm_kernel *kernel;
    struct error *error; /* set by an operation that fails */
};

/* Scratch memory of each thread. */
#define CPU_SCRATCH_BYTES (768 * 1024)

#define X(name) void cpu_##name(const struct cpu_call *call, const struct name *arguments);
DEVICE_OPERATIONS(X)
#undef X

/* Function attribute for elementwise loops. */
#define CPU_VECTORISED VECTORISED

/* Elementwise operations are cut into runs of CPU_RUN elements. */
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
