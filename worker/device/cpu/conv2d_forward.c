/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/device/cpu/conv2d.h"

/* packed[panel][kh][kw][c][column] = weight[o][c][kh][kw] */
static void pack_weights(const struct conv2d_shape *shape, int64_t panel_width, const float *weight, float *packed)
{
    int64_t window = shape->kernel * shape->kernel, depth = window * shape->c;
    int64_t panels = (shape->o + panel_width - 1) / panel_width;
    memset(packed, 0, (size_t)(panels * depth * panel_width) * sizeof *packed);
    for (int64_t o = 0; o < shape->o; o++) {
        float *panel = packed + o / panel_width * depth * panel_width + o % panel_width;
        for (int64_t c = 0; c < shape->c; c++)
            for (int64_t k = 0; k < window; k++)
                panel[(k * shape->c + c) * panel_width] = *weight++;
    }
}

void cpu_conv2d_forward(const struct cpu_call *call, const struct conv2d_forward *op)
{
    const struct conv2d_shape *shape = &op->shape;
    pack_weights(shape, call->kernel->columns, op->weight, op->workspace);
    correlation_run(call, &(struct correlation){
                              .gemm = call->kernel,
                              .view = {shape->h, shape->w, shape->c, shape->padding, 1, shape->w + 2 * shape->padding},
                              .b = shape->b,
                              .kernel = shape->kernel,
                              .stride = shape->stride,
                              .oh = shape->oh,
                              .ow = shape->ow,
                              .o = shape->o,
                              .images = op->x,
                              .packed = op->workspace,
                              .bias = op->bias,
                              .out = op->y,
                              .relu = op->activation == ACTIVATION_RELU,
                          });
}
