/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/gemm_kernel.h"

#include <stddef.h>
#include <string.h>

/* The word stands for oneDNN's bits as well, which asks for more than our kernel needs. */
static bool supported(const struct gemm_kernel *kernel)
{
#ifdef __x86_64__
    if (kernel == &gemm_kernel_avx512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (kernel == &gemm_kernel_avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return kernel == &gemm_kernel_portable;
}

const struct gemm_kernel *gemm_kernel_choose(const char *name)
{
    static const struct gemm_kernel *const kernels[] = {
#ifdef __x86_64__
        &gemm_kernel_avx512,
        &gemm_kernel_avx2,
#endif
        &gemm_kernel_portable,
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (supported(kernels[i]) && (!name || strcmp(name, kernels[i]->name) == 0))
            return kernels[i];
    return NULL;
}
