/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/pool.cuh"

template <typename Stored, bool ALIGNED> static __global__ void each_input(struct average_pool_backward op)
{
    typedef element_pack<Stored> pack;
    const struct pool_shape &s = op.shape;
    EACH_IMAGE_PACK(image, i, s.b, packs_of<Stored>(s.h * s.w, s.c))
    {
        const struct place at = place_of<Stored>(i, s.w, s.c);
        const Stored *dy = values<Stored>(op.dy).start + image * s.oh * s.ow * s.c + at.channel;
        const struct range rows = covering(s, at.row, s.oh), columns = covering(s, at.column, s.ow);
        const float share = 1.0f / (float)(s.size * s.size);
        float gradient[pack::LENGTH] = {};
        for (int r = rows.first; r < rows.end; r++)
            for (int q = columns.first; q < columns.end; q++) {
                const pack some = read_pack<ALIGNED>(dy + (r * s.ow + q) * s.c, at.left);
#pragma unroll
                for (int k = 0; k < pack::LENGTH; k++)
                    gradient[k] += widen(some.at[k]) * share;
            }
        pack dx;
#pragma unroll
        for (int k = 0; k < pack::LENGTH; k++)
            narrow(gradient[k], &dx.at[k]);
        write_pack<ALIGNED>(values<Stored>(op.dx).start + image * s.h * s.w * s.c + at.element, dx, at.left);
    }
}

template <typename Stored> static void launch(const struct cuda_call *call, const struct average_pool_backward *op)
{
    launch_each_pack<Stored>(call, *op, op->shape.h * op->shape.w, each_input<Stored, true>, each_input<Stored, false>,
                             op->dy, op->dx);
}

void cuda_average_pool_backward(const struct cuda_call *call, const struct average_pool_backward *op)
{
    BY_STORED(call, launch, call, op);
}
