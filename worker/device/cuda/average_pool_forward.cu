/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/pool.cuh"

template <typename Stored> static __global__ void each_output(struct average_pool_forward op)
{
    const struct pool_shape &s = op.shape;
    EACH_IMAGE_ELEMENT(image, i, s.b, s.oh * s.ow * s.c)
    {
        const struct place at = place_of(i, s.ow, s.c);
        const struct range rows = covered(s, at.row, s.h), columns = covered(s, at.column, s.w);
        const values<Stored> x = values<Stored>(op.x) + (image * s.h * s.w * s.c + at.channel);
        float sum = 0;
        for (int r = rows.first; r < rows.end; r++)
            for (int q = columns.first; q < columns.end; q++)
                sum += x[(r * s.w + q) * s.c];
        values<Stored>(op.y).put(image * s.oh * s.ow * s.c + i, sum * (1.0f / (float)(s.size * s.size)));
    }
}

void cuda_average_pool_forward(const struct cuda_call *call, const struct average_pool_forward *op)
{
    const struct pool_shape *s = &op->shape;
    launch_each_image(call, s->b, s->oh * s->ow * s->c, KERNEL_FOR(call, each_output), *op);
}
