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

/* The data of one image. */
struct image {
    const float *x, *y, *dy;
    float *dx;
};

static inline __attribute__((always_inline)) void spread_windows(const struct pool_shape *shape, struct image image,
                                                                 bool relu)
{
    memset(image.dx, 0, (size_t)(shape->h * shape->w * shape->c) * sizeof *image.dx);
    for (int64_t i = 0; i < shape->oh; i++)
        for (int64_t j = 0; j < shape->ow; j++)
            for (int64_t first = 0; first < shape->c; first += CHANNEL_RUN) {
                int64_t channels = shape->c - first < CHANNEL_RUN ? shape->c - first : CHANNEL_RUN;
                int64_t out = (i * shape->ow + j) * shape->c + first;
                struct spread spread = {.y = image.y + out, .dy = image.dy + out};
                begin(&spread, channels, relu);
                struct window window = pool_window(shape, i, j);
                for (int64_t r = window.top; r < window.bottom; r++)
                    for (int64_t q = window.left; q < window.right; q++) {
                        int64_t at = (r * shape->w + q) * shape->c + first;
                        give(&spread, image.x + at, image.dx + at, channels);
                    }
            }
}

/* The usual windows, of two by two pixels that no other has: each element is written once. */
static inline __attribute__((always_inline)) void give_four(const float *restrict x, const float *restrict y,
                                                            const float *restrict dy, int64_t line, int64_t channels,
                                                            bool relu, float *restrict dx)
{
    for (int64_t c = 0; c < channels; c++) {
        float left = relu && !(y[c] > 0) ? 0 : dy[c];
        bool first = x[c] == y[c], second = x[c + channels] == y[c], third = x[line + c] == y[c];
        dx[c] = first ? left : 0;
        left = first ? 0 : left;
        dx[c + channels] = second ? left : 0;
        left = second ? 0 : left;
        dx[line + c] = third ? left : 0;
        left = third ? 0 : left;
        dx[line + c + channels] = x[line + c + channels] == y[c] ? left : 0;
    }
}

static inline __attribute__((always_inline)) void spread_fours(const struct pool_shape *shape, struct image image,
                                                               bool relu)
{
    int64_t channels = shape->c, line = shape->w * channels, covered = 2 * shape->ow * channels;
    for (int64_t i = 0; i < shape->oh; i++) {
        for (int64_t j = 0; j < shape->ow; j++, image.y += channels, image.dy += channels) {
            int64_t at = 2 * i * line + 2 * j * channels;
            give_four(image.x + at, image.y, image.dy, line, channels, relu, image.dx + at);
        }
        for (int64_t r = 2 * i; r < 2 * i + 2; r++)
            memset(image.dx + r * line + covered, 0, (size_t)(line - covered) * sizeof *image.dx);
    }
    int64_t rest = shape->h - 2 * shape->oh;
    memset(image.dx + 2 * shape->oh * line, 0, (size_t)(rest * line) * sizeof *image.dx);
}

CPU_VECTORISED static void spread_image(const void *context, int64_t number, void *scratch)
{
    const struct max_pool_backward *op = context;
    const struct pool_shape *shape = &op->shape;
    (void)scratch;
    int64_t inputs = shape->h * shape->w * shape->c, outputs = shape->oh * shape->ow * shape->c;
    struct image image = {op->x + number * inputs, op->y + number * outputs, op->dy + number * outputs,
                          op->dx + number * inputs};
    bool fours = shape->size == 2 && shape->stride == 2 && shape->padding == 0;
    if (fours && op->relu)
        spread_fours(shape, image, true);
    else if (fours)
        spread_fours(shape, image, false);
    else
        spread_windows(shape, image, op->relu);
}

void cpu_max_pool_backward(const struct cpu_call *call, const struct max_pool_backward *op)
{
    team_run(call->team, op->shape.b, spread_image, op);
}
