/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling windows: the part of the input that one covers, and the windows that
 * cover an input. Threads own one element each, so backward passes gather.
 */
#ifndef COXSWAIN_DEVICE_CUDA_POOL_CUH
#define COXSWAIN_DEVICE_CUDA_POOL_CUH

#include "worker/device/cuda/stored.cuh"

struct range {
    int first, end;
};

/* Inputs that output `i` covers along an axis of `length`. */
static __device__ inline struct range covered(const struct pool_shape &shape, int i, int64_t length)
{
    int first = i * (int)shape.stride - (int)shape.padding;
    return {max(first, 0), min(first + (int)shape.size, (int)length)};
}

/* Outputs of an axis of `outputs` that cover input `at`. */
static __device__ inline struct range covering(const struct pool_shape &shape, int at, int64_t outputs)
{
    int last = at + (int)shape.padding, before = last - (int)shape.size;
    return {before < 0 ? 0 : before / (int)shape.stride + 1, min(last / (int)shape.stride + 1, (int)outputs)};
}

/* Element i of an image [h,w,c]; less than 2^31, as the graph has it. */
struct place {
    int row, column, channel;
};
static __device__ inline struct place place_of(int i, int64_t w, int64_t c)
{
    const int pixel = i / (int)c;
    return {pixel / (int)w, pixel % (int)w, i % (int)c};
}

/* A thread has the same element of every gridDim.y-th image. */
#define EACH_IMAGE_ELEMENT(image, i, images, elements)                                                                 \
    const int i = (int)(blockIdx.x * EACH_THREADS + threadIdx.x);                                                      \
    if (i >= (elements))                                                                                               \
        return;                                                                                                        \
    for (int64_t image = blockIdx.y; image < (images); image += gridDim.y)

template <typename Operation>
static void launch_each_image(const struct cuda_call *call, int64_t images, int64_t elements, void (*kernel)(Operation),
                              const Operation &op)
{
    const dim3 blocks((unsigned)((elements + EACH_THREADS - 1) / EACH_THREADS),
                      (unsigned)(images < 65535 ? images : 65535));
    if (images > 0)
        launch_kernel(call, blocks, EACH_THREADS, 0, kernel, op);
}

#endif
