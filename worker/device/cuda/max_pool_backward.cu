/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/pool.cuh"

/* Returns, as bits, the channels of a pack whose values are not the maxima. */
template <typename Stored>
static __device__ inline unsigned differ(const element_pack<Stored> &x, const float maximum[element_pack<Stored>::LENGTH])
{
    unsigned bits = 0;
#pragma unroll
    for (int k = 0; k < x.LENGTH; k++)
        bits |= widen(x.at[k]) == maximum[k] ? 0u : 1u << k;
    return bits;
}

/* Returns those of `channels` in which no element of the window before (row, column) is the maximum, and so gets the gradient. */
template <bool ALIGNED, typename Stored>
static __device__ inline unsigned left_over(const struct max_pool_backward &op, const struct place &at, const Stored *x,
                                            int i, int j, unsigned channels,
                                            const float maximum[element_pack<Stored>::LENGTH])
{
    const struct pool_shape &s = op.shape;
    const struct range rows = covered(s, i, s.h), columns = covered(s, j, s.w);
    for (int r = rows.first; r <= at.row; r++)
#pragma unroll 3
        for (int q = columns.first; q < (r == at.row ? at.column : columns.end); q++)
            channels &= differ(read_pack<ALIGNED>(x + (r * s.w + q) * s.c, at.left), maximum);
    return channels;
}

template <typename Stored, bool ALIGNED> static __global__ void each_input(struct max_pool_backward op)
{
    typedef element_pack<Stored> pack;
    const struct pool_shape &s = op.shape;
    EACH_IMAGE_PACK(image, i, s.b, packs_of<Stored>(s.h * s.w, s.c))
    {
        const struct place at = place_of<Stored>(i, s.w, s.c);
        const Stored *x = values<Stored>(op.x).start + image * s.h * s.w * s.c + at.channel;
        const int64_t outputs = image * s.oh * s.ow * s.c + at.channel;
        const struct range rows = covering(s, at.row, s.oh), columns = covering(s, at.column, s.ow);
        const pack own = read_pack<ALIGNED>(x + (at.row * s.w + at.column) * s.c, at.left);
        float gradient[pack::LENGTH] = {};
        for (int r = rows.first; r < rows.end; r++)
            for (int q = columns.first; q < columns.end; q++) {
                const int64_t output = outputs + (r * s.ow + q) * s.c;
                const pack y = read_pack<ALIGNED>(values<Stored>(op.y).start + output, at.left);
                const pack dy = read_pack<ALIGNED>(values<Stored>(op.dy).start + output, at.left);
                float maximum[pack::LENGTH];
                unsigned channels = 0;
#pragma unroll
                for (int k = 0; k < pack::LENGTH; k++) {
                    maximum[k] = widen(y.at[k]);
                    channels |= widen(own.at[k]) == maximum[k] && (!op.relu || maximum[k] > 0) ? 1u << k : 0;
                }
                if (channels)
                    channels = left_over<ALIGNED>(op, at, x, r, q, channels, maximum);
#pragma unroll
                for (int k = 0; k < pack::LENGTH; k++)
                    gradient[k] += channels >> k & 1 ? widen(dy.at[k]) : 0;
            }
        pack dx;
#pragma unroll
        for (int k = 0; k < pack::LENGTH; k++)
            narrow(gradient[k], &dx.at[k]);
        write_pack<ALIGNED>(values<Stored>(op.dx).start + image * s.h * s.w * s.c + at.element, dx, at.left);
    }
}

template <typename Stored> static void launch(const struct cuda_call *call, const struct max_pool_backward *op)
{
    launch_each_pack<Stored>(call, *op, op->shape.h * op->shape.w, each_input<Stored, true>, each_input<Stored, false>,
                             op->x, op->y, op->dy, op->dx);
}

void cuda_max_pool_backward(const struct cuda_call *call, const struct max_pool_backward *op)
{
    BY_STORED(call, launch, call, op);
}
