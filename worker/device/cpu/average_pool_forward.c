/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/device/cpu/pool.h"

CPU_VECTORISED static void pool_image(const void *context, int64_t image, void *scratch)
{
    const struct average_pool_forward *op = context;
    const struct pool_shape *shape = &op->shape;
    (void)scratch;
    const float share = 1.0f / (float)(shape->size * shape->size);
    const float *x = op->x + image * shape->h * shape->w * shape->c;
    float *restrict y = op->y + image * shape->oh * shape->ow * shape->c;
    for (int64_t i = 0; i < shape->oh; i++)
        for (int64_t j = 0; j < shape->ow; j++, y += shape->c) {
            struct window window = pool_window(shape, i, j);
            memset(y, 0, (size_t)shape->c * sizeof *y);
            for (int64_t r = window.top; r < window.bottom; r++)
                for (int64_t q = window.left; q < window.right; q++) {
                    const float *restrict from = x + (r * shape->w + q) * shape->c;
                    for (int64_t c = 0; c < shape->c; c++)
                        y[c] += from[c];
                }
            for (int64_t c = 0; c < shape->c; c++)
                y[c] *= share;
        }
}

void cpu_average_pool_forward(const struct cpu_call *call, const struct average_pool_forward *op)
{
    team_run(call->team, op->shape.b, pool_image, op);
}
