/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "worker/device/cpu/cpu.h"

/* The part of an image that a pooling window covers. */
struct window {
    int64_t top, bottom, left, right; /* [top, bottom) x [left, right), cut at the borders */
};

static inline struct window pool_window(const struct pool_shape *shape, int64_t i, int64_t j)
{
    int64_t top = i * shape->stride - shape->padding, left = j * shape->stride - shape->padding;
    return (struct window){
        .top = top < 0 ? 0 : top,
        .bottom = top + shape->size < shape->h ? top + shape->size : shape->h,
        .left = left < 0 ? 0 : left,
        .right = left + shape->size < shape->w ? left + shape->size : shape->w,
    };
}

CPU_VECTORISED static void average_image(const void *context, int64_t image, void *scratch)
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
    team_run(call->team, op->shape.b, average_image, op);
}

CPU_VECTORISED static void spread_average(const void *context, int64_t image, void *scratch)
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
    team_run(call->team, op->shape.b, spread_average, op);
}

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

CPU_VECTORISED static void max_image(const void *context, int64_t image, void *scratch)
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
    team_run(call->team, op->shape.b, max_image, op);
}

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

CPU_VECTORISED static void spread_max(const void *context, int64_t number, void *scratch)
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
    team_run(call->team, op->shape.b, spread_max, op);
}
