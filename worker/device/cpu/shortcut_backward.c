/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/device/cpu/cpu.h"

/* A row of x; zeros where the shortcut did not read. */
static void row_piece(const void *context, int64_t piece, void *scratch)
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
    team_run(call->team, op->shape.b * op->shape.h, row_piece, op);
}
