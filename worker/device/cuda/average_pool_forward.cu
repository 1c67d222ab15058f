/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/pool.cuh"

template <typename Stored, bool ALIGNED> static __global__ void each_output(struct average_pool_forward op)
{
    typedef element_pack<Stored> pack;
    const struct pool_shape &s = op.shape;
    EACH_IMAGE_PACK(image, i, s.b, packs_of<Stored>(s.oh * s.ow, s.c))
    {
        const struct place at = place_of<Stored>(i, s.ow, s.c);
        const struct range rows = covered(s, at.row, s.h), columns = covered(s, at.column, s.w);
        const Stored *x = values<Stored>(op.x).start + image * s.h * s.w * s.c + at.channel;
        const float share = 1.0f / (float)(s.size * s.size);
        float sum[pack::LENGTH] = {};
        for (int r = rows.first; r < rows.end; r++)
#pragma unroll 4
            for (int q = columns.first; q < columns.end; q++) {
                const pack some = read_pack<ALIGNED>(x + (r * s.w + q) * s.c, at.left);
#pragma unroll
                for (int k = 0; k < pack::LENGTH; k++)
                    sum[k] += widen(some.at[k]);
            }
        pack y;
#pragma unroll
        for (int k = 0; k < pack::LENGTH; k++)
            narrow(sum[k] * share, &y.at[k]);
        write_pack<ALIGNED>(values<Stored>(op.y).start + image * s.oh * s.ow * s.c + at.element, y, at.left);
    }
}

template <typename Stored> static void launch(const struct cuda_call *call, const struct average_pool_forward *op)
{
    launch_each_pack<Stored>(call, *op, op->shape.oh * op->shape.ow, each_output<Stored, true>,
                             each_output<Stored, false>, op->x, op->y);
}

void cuda_average_pool_forward(const struct cuda_call *call, const struct average_pool_forward *op)
{
    BY_STORED(call, launch, call, op);
}
