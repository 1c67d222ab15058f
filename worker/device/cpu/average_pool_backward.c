/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/device/cpu/pool.h"

CPU_VECTORISED static void spread_image(const void *context, int64_t image, void *scratch)
{
    const struct average_pool_backward *op = context;
    const struct pool_shape *shape = &op->shape;
    (void)scratch;
    const float share = 1.0f / (float)(shape->size * shape->size);
    int64_t inputs = shape->h * shape->w * shape->c;
    float *dx = op->dx + image * inputs;
    const float *restrict dy = op->dy + image * shape->oh * shape->ow * shape->c;
    memset(dx, 0, (size_t)inputs * sizeof *dx);
    for (int64_t i = 0; i < shape->oh; i++)
        for (int64_t j = 0; j < shape->ow; j++, dy += shape->c) {
            struct window window = pool_window(shape, i, j);
            for (int64_t r = window.top; r < window.bottom; r++)
                for (int64_t q = window.left; q < window.right; q++) {
                    float *restrict to = dx + (r * shape->w + q) * shape->c;
                    for (int64_t c = 0; c < shape->c; c++)
                        to[c] += dy[c] * share;
                }
        }
}

void cpu_average_pool_backward(const struct cpu_call *call, const struct average_pool_backward *op)
{
    team_run(call->team, op->shape.b, spread_image, op);
}
