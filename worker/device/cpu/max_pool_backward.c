/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/device/cpu/pool.h"

/* Channels of one window that have not given their gradient away yet. */
#define CHANNEL_RUN 64

struct spread {
    const float *y, *dy;
    float left[CHANNEL_RUN]; /* the gradient, zero once given away */
};

static inline __attribute__((always_inline)) void begin(struct spread *spread, int64_t channels, bool relu)
{
    for (int64_t c = 0; c < channels; c++)
        spread->left[c] = relu && !(spread->y[c] > 0) ? 0 : spread->dy[c];
}

static inline __attribute__((always_inline)) void give(struct spread *spread, const float *restrict x,
                                                       float *restrict dx, int64_t channels)
{
    for (int64_t c = 0; c < channels; c++) {
        float hit = x[c] == spread->y[c] ? spread->left[c] : 0;
        dx[c] += hit;
        spread->left[c] = x[c] == spread->y[c] ? 0 : spread->left[c];
    }
}

CPU_VECTORISED static void spread_image(const void *context, int64_t image, void *scratch)
{
    const struct max_pool_backward *op = context;
    const struct pool_shape *shape = &op->shape;
    (void)scratch;
    int64_t inputs = shape->h * shape->w * shape->c, outputs = shape->oh * shape->ow * shape->c;
    const float *x = op->x + image * inputs;
    float *dx = op->dx + image * inputs;
    memset(dx, 0, (size_t)inputs * sizeof *dx);
    for (int64_t i = 0; i < shape->oh; i++)
        for (int64_t j = 0; j < shape->ow; j++)
            for (int64_t first = 0; first < shape->c; first += CHANNEL_RUN) {
                int64_t channels = shape->c - first < CHANNEL_RUN ? shape->c - first : CHANNEL_RUN;
                int64_t out = image * outputs + (i * shape->ow + j) * shape->c + first;
                struct spread spread = {.y = op->y + out, .dy = op->dy + out};
                begin(&spread, channels, op->relu);
                struct window window = pool_window(shape, i, j);
                for (int64_t r = window.top; r < window.bottom; r++)
                    for (int64_t q = window.left; q < window.right; q++) {
                        int64_t at = (r * shape->w + q) * shape->c + first;
                        give(&spread, x + at, dx + at, channels);
                    }
            }
}

void cpu_max_pool_backward(const struct cpu_call *call, const struct max_pool_backward *op)
{
    team_run(call->team, op->shape.b, spread_image, op);
}
