/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/each.cuh"

static __global__ void each_output(struct shortcut_forward op)
{
    const struct shortcut_shape s = op.shape;
    const int64_t oh = (s.h + s.stride - 1) / s.stride, ow = (s.w + s.stride - 1) / s.stride;
    EACH(i, s.b * oh * ow * s.o);
    const int64_t o = i % s.o, column = i / s.o % ow, row = i / (s.o * ow) % oh, image = i / (s.o * ow * oh);
    op.y[i] = o < s.c ? op.x[((image * s.h + row * s.stride) * s.w + column * s.stride) * s.c + o] : 0;
}

void cuda_shortcut_forward(const struct cuda_call *call, const struct shortcut_forward *op)
{
    const struct shortcut_shape *s = &op->shape;
    launch_each(call, s->b * ((s->h + s->stride - 1) / s->stride) * ((s->w + s->stride - 1) / s->stride) * s->o,
                each_output, *op);
}
