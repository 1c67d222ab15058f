/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "worker/device/cpu/pool.h"

/* A NaN is larger than all: what is wrong must be seen. */
static inline __attribute__((always_inline)) float larger(float one, float other)
{
    return other <= one || one != one ? one : other;
}

/* The usual window, without a detour through memory. The maximum keeps a NaN of the first alone; it is quicker to look for the others
 * behind it than at each. */
static inline __attribute__((always_inline)) void pool_four(const float *restrict x, int64_t line, int64_t channels,
                                                            float *restrict y)
{
    for (int64_t c = 0; c < channels; c++) {
        float first = x[c], second = x[c + channels], third = x[line + c], fourth = x[line + c + channels];
        float most = second > first ? second : first;
        most = third > most ? third : most;
        most = fourth > most ? fourth : most;
        most = second != second ? second : most;
        most = third != third ? third : most;
        y[c] = fourth != fourth ? fourth : most;
    }
}

CPU_VECTORISED static void pool_image(const void *context, int64_t image, void *scratch)
{
    const struct max_pool_forward *op = context;
    const struct pool_shape *shape = &op->shape;
    (void)scratch;
    const float *x = op->x + image * shape->h * shape->w * shape->c;
    float *restrict y = op->y + image * shape->oh * shape->ow * shape->c;
    for (int64_t i = 0; i < shape->oh; i++)
        for (int64_t j = 0; j < shape->ow; j++, y += shape->c) {
            struct window window = pool_window(shape, i, j);
            if (shape->size == 2 && shape->padding == 0) {
                pool_four(x + (window.top * shape->w + window.left) * shape->c, shape->w * shape->c, shape->c, y);
                continue;
            }
            for (int64_t c = 0; c < shape->c; c++)
                y[c] = -INFINITY;
            for (int64_t r = window.top; r < window.bottom; r++)
                for (int64_t q = window.left; q < window.right; q++) {
                    const float *restrict from = x + (r * shape->w + q) * shape->c;
                    for (int64_t c = 0; c < shape->c; c++)
                        y[c] = larger(y[c], from[c]);
                }
        }
}

void cpu_max_pool_forward(const struct cpu_call *call, const struct max_pool_forward *op)
{
    team_run(call->team, op->shape.b, pool_image, op);
}
