/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/stored.cuh"

template <typename Stored> static __global__ void each_input(struct shortcut_backward op)
{
    const struct shortcut_shape s = op.shape;
    const int64_t oh = (s.h + s.stride - 1) / s.stride, ow = (s.w + s.stride - 1) / s.stride;
    EACH(i, s.b * s.h * s.w * s.c);
    const int64_t c = i % s.c, column = i / s.c % s.w, row = i / (s.c * s.w) % s.h, image = i / (s.c * s.w * s.h);
    const bool read = row % s.stride == 0 && column % s.stride == 0;
    const int64_t from = ((image * oh + row / s.stride) * ow + column / s.stride) * s.o + c;
    values<Stored>(op.dx).put(i, read ? values<Stored>(op.dy)[from] : 0);
}

void cuda_shortcut_backward(const struct cuda_call *call, const struct shortcut_backward *op)
{
    launch_each(call, op->shape.b * op->shape.h * op->shape.w * op->shape.c, KERNEL_FOR(call, each_input), *op);
}
