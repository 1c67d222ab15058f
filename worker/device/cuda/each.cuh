/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs elementwise kernels with one thread per element. The kernel takes the operation's arguments
 * by value and begins with EACH(i, count).
 */
#ifndef COXSWAIN_DEVICE_CUDA_EACH_CUH
#define COXSWAIN_DEVICE_CUDA_EACH_CUH

#include "worker/device/cuda/launch.cuh"

#define EACH_THREADS 256
#define EACH(i, count)                                                                                                 \
    const int64_t i = (int64_t)blockIdx.x * EACH_THREADS + threadIdx.x;                                                \
    if (i >= (count))                                                                                                  \
    return

template <typename Operation>
static void launch_each(const struct cuda_call *call, int64_t count, void (*kernel)(Operation), const Operation &op)
{
    if (count > 0)
        launch_kernel(call, (unsigned)((count + EACH_THREADS - 1) / EACH_THREADS), EACH_THREADS, 0, kernel, op);
}

#endif
