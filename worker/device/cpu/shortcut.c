/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/device/cpu/cpu.h"

static void forward_row(const void *context, int64_t piece, void *scratch)
{
    const struct shortcut_forward *op = context;
    const struct shortcut_shape *s = &op->shape;
    (void)scratch;
    int64_t oh = (s->h + s->stride - 1) / s->stride, ow = (s->w + s->stride - 1) / s->stride;
    const float *x = op->x + (piece / oh * s->h + piece % oh * s->stride) * s->w * s->c;
    float *y = op->y + piece * ow * s->o;
    for (int64_t j = 0; j < ow; j++, y += s->o) {
        memcpy(y, x + j * s->stride * s->c, (size_t)s->c * sizeof *y);
        memset(y + s->c, 0, (size_t)(s->o - s->c) * sizeof *y);
    }
}

void cpu_shortcut_forward(const struct cpu_call *call, const struct shortcut_forward *op)
{
    team_run(call->team, op->shape.b * ((op->shape.h + op->shape.stride - 1) / op->shape.stride), forward_row, op);
}

/* A row of x; zeros where the shortcut did not read. */
static void backward_row(const void *context, int64_t piece, void *scratch)
{
    const struct shortcut_backward *op = context;
    const struct shortcut_shape *s = &op->shape;
    (void)scratch;
    int64_t oh = (s->h + s->stride - 1) / s->stride, ow = (s->w + s->stride - 1) / s->stride;
    int64_t image = piece / s->h, row = piece % s->h;
    float *dx = op->dx + piece * s->w * s->c;
    memset(dx, 0, (size_t)(s->w * s->c) * sizeof *dx);
    if (row % s->stride != 0)
        return;
    const float *dy = op->dy + (image * oh + row / s->stride) * ow * s->o;
    for (int64_t j = 0; j < ow; j++)
        memcpy(dx + j * s->stride * s->c, dy + j * s->o, (size_t)s->c * sizeof *dx);
}

void cpu_shortcut_backward(const struct cpu_call *call, const struct shortcut_backward *op)
{
    team_run(call->team, op->shape.b * op->shape.h, backward_row, op);
}
