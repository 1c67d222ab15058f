/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/pool.cuh"

/* Whether an element of the window before (row, column) has its maximum too, and so its gradient. */
template <typename Stored>
static __device__ bool taken(const struct max_pool_backward &op, const struct place &at, const values<Stored> &x, int i,
                             int j, float maximum)
{
    const struct pool_shape &s = op.shape;
    const struct range rows = covered(s, i, s.h), columns = covered(s, j, s.w);
    for (int r = rows.first; r <= at.row; r++)
        for (int q = columns.first; q < (r == at.row ? at.column : columns.end); q++)
            if (x[(r * s.w + q) * s.c] == maximum)
                return true;
    return false;
}

template <typename Stored> static __global__ void each_input(struct max_pool_backward op)
{
    const struct pool_shape &s = op.shape;
    EACH_IMAGE_ELEMENT(image, i, s.b, s.h * s.w * s.c)
    {
        const struct place at = place_of(i, s.w, s.c);
        const values<Stored> x = values<Stored>(op.x) + image * s.h * s.w * s.c;
        const int64_t outputs = image * s.oh * s.ow * s.c + at.channel;
        const struct range rows = covering(s, at.row, s.oh), columns = covering(s, at.column, s.ow);
        float gradient = 0;
        for (int r = rows.first; r < rows.end; r++)
            for (int q = columns.first; q < columns.end; q++) {
                const int64_t output = outputs + (r * s.ow + q) * s.c;
                const float maximum = values<Stored>(op.y)[output];
                if (x[i] == maximum && (!op.relu || maximum > 0) && !taken(op, at, x + at.channel, r, q, maximum))
                    gradient += values<Stored>(op.dy)[output];
            }
        values<Stored>(op.dx).put(image * s.h * s.w * s.c + i, gradient);
    }
}

void cuda_max_pool_backward(const struct cuda_call *call, const struct max_pool_backward *op)
{
    const struct pool_shape *s = &op->shape;
    launch_each_image(call, s->b, s->h * s->w * s->c, KERNEL_FOR(call, each_input), *op);
}
