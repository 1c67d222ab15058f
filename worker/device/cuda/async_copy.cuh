/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies from global memory into a block's shared memory asynchronously (cp.async, compute
 * capability 8.0). A thread's copies belong to the batch that it closes next. The thread sees them
 * once it has awaited that batch; the block's other threads see them after a barrier that follows.
 */
#ifndef COXSWAIN_DEVICE_CUDA_ASYNC_COPY_CUH
#define COXSWAIN_DEVICE_CUDA_ASYNC_COPY_CUH

#include <stdint.h>

#ifdef __CUDACC__
static __device__ inline uint32_t shared_address(const void *place)
{
    return (uint32_t)__cvta_generic_to_shared(place);
}
#endif

/* Starts a copy of 16 or 8 bytes; both addresses are multiples of that size. If `there` is
 * false, writes zeros and reads nothing. */
template <int BYTES> static __device__ inline void copy_ahead(void *to, const void *from, bool there)
{
    static_assert(BYTES == 16 || BYTES == 8, "what cp.async takes");
#ifdef __CUDACC__
    const int bytes = there ? BYTES : 0;
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes)
                     : "memory");
#else
    emulated_copy_ahead(to, from, BYTES, there);
#endif
}

static __device__ inline void close_copies(void)
{
#ifdef __CUDACC__
    asm volatile("cp.async.commit_group;" ::: "memory");
#else
    emulated_close_copies();
#endif
}

/* Waits for all copies that the thread has closed. */
static __device__ inline void await_copies(void)
{
#ifdef __CUDACC__
    asm volatile("cp.async.wait_group 0;" ::: "memory");
#else
    emulated_await_copies();
#endif
}

#endif
