/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/convolution.h"
#include "worker/device/cuda/stored.cuh"

struct packing {
    struct conv2d_shape shape;
    const float *from;
    float *to;
    bool accumulate;
};

/* Where element i of O KH KW C is in O C KH KW. */
static __device__ inline int64_t unpacked(const struct conv2d_shape &s, int64_t i)
{
    const int64_t window = s.kernel * s.kernel, c = i % s.c, place = i / s.c % window, o = i / s.c / window;
    return (o * s.c + c) * window + place;
}

template <typename Stored> static __global__ void pack_each(struct packing job)
{
    const struct conv2d_shape &s = job.shape;
    EACH(i, s.o * s.c * s.kernel * s.kernel);
    values<Stored>(job.to).start[i] = values<Stored>(job.from).start[unpacked(s, i)];
}

template <typename Stored> static __global__ void unpack_each(struct packing job)
{
    const struct conv2d_shape &s = job.shape;
    EACH(i, s.o * s.c * s.kernel * s.kernel);
    float *place = job.to + unpacked(s, i);
    const float sum = widen(values<Stored>(job.from).start[i]);
    *place = job.accumulate ? *place + sum : sum;
}

template <typename Stored> static void pack(const struct cuda_call *call, const struct packing *job)
{
    const struct conv2d_shape &s = job->shape;
    launch_each(call, s.o * s.c * s.kernel * s.kernel, pack_each<Stored>, *job);
}

template <typename Stored> static void unpack(const struct cuda_call *call, const struct packing *job)
{
    const struct conv2d_shape &s = job->shape;
    launch_each(call, s.o * s.c * s.kernel * s.kernel, unpack_each<Stored>, *job);
}

void cuda_pack_convolution(const struct cuda_call *call, const struct conv2d_shape *shape, const float *weight,
                           float *packed)
{
    const struct packing job = {*shape, weight, packed, false};
    BY_STORED(call, pack, call, &job);
}

void cuda_unpack_convolution(const struct cuda_call *call, const struct conv2d_shape *shape, const float *packed,
                             float *dweight, bool accumulate)
{
    const struct packing job = {*shape, packed, dweight, accumulate};
    BY_STORED(call, unpack, call, &job);
}
