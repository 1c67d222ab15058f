/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes which inputs a pooling window covers, and which windows cover an input. Each thread
 * handles 16 bytes of a pixel; backward passes gather, so that no two threads add to the same
 * element.
 */
#ifndef COXSWAIN_DEVICE_CUDA_POOL_CUH
#define COXSWAIN_DEVICE_CUDA_POOL_CUH

#include "worker/device/cuda/stored.cuh"

struct range {
    int first, end;
};

/* Returns the inputs that output `i` covers along an axis of `length`. */
static __device__ inline struct range covered(const struct pool_shape &shape, int i, int64_t length)
{
    int first = i * (int)shape.stride - (int)shape.padding;
    return {max(first, 0), min(first + (int)shape.size, (int)length)};
}

/* Returns the outputs of an axis of `outputs` that cover input `at`. */
static __device__ inline struct range covering(const struct pool_shape &shape, int at, int64_t outputs)
{
    int last = at + (int)shape.padding, before = last - (int)shape.size;
    return {before < 0 ? 0 : before / (int)shape.stride + 1, min(last / (int)shape.stride + 1, (int)outputs)};
}

/* Returns the place of the i-th pack of an image [h,w,c]; each pixel has the same number of
 * packs. An image has fewer than 2^31 elements (graph_layers.c). */
struct place {
    int row, column, channel; /* the pack's first channel */
    int left;                 /* the channels from there on */
    int64_t element;          /* element of the image */
};
template <typename Stored> static __device__ inline struct place place_of(int i, int64_t w, int64_t c)
{
    const int length = element_pack<Stored>::LENGTH, packs = ((int)c + length - 1) / length;
    const int pixel = i / packs, channel = (i - pixel * packs) * length, row = pixel / (int)w;
    return {row, pixel - row * (int)w, channel, (int)c - channel, (int64_t)pixel * c + channel};
}

template <typename Stored> static __host__ __device__ inline int64_t packs_of(int64_t pixels, int64_t c)
{
    return pixels * ((c + element_pack<Stored>::LENGTH - 1) / element_pack<Stored>::LENGTH);
}

/* Loops over the images: each thread handles the same pack of every gridDim.y-th image. */
#define EACH_IMAGE_PACK(image, i, images, packs)                                                                       \
    const int i = (int)(blockIdx.x * EACH_THREADS + threadIdx.x);                                                      \
    if (i >= (packs))                                                                                                  \
        return;                                                                                                        \
    for (int64_t image = blockIdx.y; image < (images); image += gridDim.y)

/* Launches `aligned` if packs can be read and written whole, else `unaligned`. `pixels`: of one
 * of the images that the kernel writes. */
template <typename Stored, typename Operation, typename... Places>
static void launch_each_pack(const struct cuda_call *call, const Operation &op, int64_t pixels,
                             void (*aligned)(Operation), void (*unaligned)(Operation), const Places *...places)
{
    const struct pool_shape &s = op.shape;
    const int64_t packs = packs_of<Stored>(pixels, s.c);
    const dim3 blocks((unsigned)((packs + EACH_THREADS - 1) / EACH_THREADS), (unsigned)(s.b < 65535 ? s.b : 65535));
    const bool is_aligned = are_aligned(places...) && s.c % element_pack<Stored>::LENGTH == 0;
    if (s.b > 0)
        launch_kernel(call, blocks, EACH_THREADS, 0, is_aligned ? aligned : unaligned, op);
}

#endif
