/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches kernels, for all operations, by the runtime's function instead of nvcc's <<< >>>, so
 * that other compilers can build them too (tests/gpu/emulated).
 */
#ifndef COXSWAIN_DEVICE_CUDA_LAUNCH_CUH
#define COXSWAIN_DEVICE_CUDA_LAUNCH_CUH

#include "worker/device/cuda/cuda.h"

/* Queues a kernel on the call's stream. cuda_launch, which called the operation, checks for
 * failed launches. */
template <typename... Parameters, typename... Arguments>
static void launch_kernel(const struct cuda_call *call, dim3 blocks, dim3 threads, size_t shared_bytes,
                          void (*kernel)(Parameters...), const Arguments &...arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = call->stream;
    (void)cudaLaunchKernelEx(&config, kernel, arguments...);
}

#endif
