/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a thread's part of a row from shared memory, in accesses as wide as its alignment (a
 * multiple of COUNT numbers) allows.
 */
#ifndef COXSWAIN_DEVICE_CUDA_READ_SHARE_CUH
#define COXSWAIN_DEVICE_CUDA_READ_SHARE_CUH

template <int COUNT> static __device__ inline void read_share(float *to, const float *from)
{
    if (COUNT % 4 == 0) {
#pragma unroll
        for (int i = 0; i < COUNT; i += 4)
            *(float4 *)(to + i) = *(const float4 *)(from + i);
    } else if (COUNT % 2 == 0) {
#pragma unroll
        for (int i = 0; i < COUNT; i += 2)
            *(float2 *)(to + i) = *(const float2 *)(from + i);
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            to[i] = from[i];
    }
}

#endif
