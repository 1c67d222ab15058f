/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/stored.cuh"

template <typename Stored> static __global__ void each_output(struct shortcut_forward op)
{
    const struct shortcut_shape s = op.shape;
    const int64_t oh = (s.h + s.stride - 1) / s.stride, ow = (s.w + s.stride - 1) / s.stride;
    EACH(i, s.b * oh * ow * s.o);
    const int64_t o = i % s.o, column = i / s.o % ow, row = i / (s.o * ow) % oh, image = i / (s.o * ow * oh);
    const int64_t from = ((image * s.h + row * s.stride) * s.w + column * s.stride) * s.c + o;
    values<Stored>(op.y).put(i, o < s.c ? values<Stored>(op.x)[from] : 0);
}

void cuda_shortcut_forward(const struct cuda_call *call, const struct shortcut_forward *op)
{
    const struct shortcut_shape *s = &op->shape;
    launch_each(call, s->b * ((s->h + s->stride - 1) / s->stride) * ((s->w + s->stride - 1) / s->stride) * s->o,
                KERNEL_FOR(call, each_output), *op);
}
