/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/pool.cuh"

template <typename Stored> static __global__ void each_input(struct average_pool_backward op)
{
    const struct pool_shape &s = op.shape;
    EACH_IMAGE_ELEMENT(image, i, s.b, s.h * s.w * s.c)
    {
        const struct place at = place_of(i, s.w, s.c);
        const int64_t outputs = image * s.oh * s.ow * s.c + at.channel;
        const struct range rows = covering(s, at.row, s.oh), columns = covering(s, at.column, s.ow);
        const float share = 1.0f / (float)(s.size * s.size);
        float gradient = 0;
        for (int r = rows.first; r < rows.end; r++)
            for (int q = columns.first; q < columns.end; q++)
                gradient += values<Stored>(op.dy)[outputs + (r * s.ow + q) * s.c] * share;
        values<Stored>(op.dx).put(image * s.h * s.w * s.c + i, gradient);
    }
}

void cuda_average_pool_backward(const struct cuda_call *call, const struct average_pool_backward *op)
{
    const struct pool_shape *s = &op->shape;
    launch_each_image(call, s->b, s->h * s->w * s->c, KERNEL_FOR(call, each_input), *op);
}
