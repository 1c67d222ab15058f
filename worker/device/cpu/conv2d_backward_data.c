/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/device/cpu/conv2d.h"

/* packed[panel][kh][kw][o][column] = weight[o][c][K-1-kh][K-1-kw]: the kernel turned by half a turn. */
static void pack_turned(const struct conv2d_shape *shape, int64_t panel_width, const float *weight, float *packed)
{
    int64_t window = shape->kernel * shape->kernel, depth = window * shape->o;
    int64_t panels = (shape->c + panel_width - 1) / panel_width;
    memset(packed, 0, (size_t)(panels * depth * panel_width) * sizeof *packed);
    for (int64_t o = 0; o < shape->o; o++)
        for (int64_t c = 0; c < shape->c; c++) {
            float *panel = packed + c / panel_width * depth * panel_width + c % panel_width;
            for (int64_t k = window - 1; k >= 0; k--)
                panel[(k * shape->o + o) * panel_width] = *weight++;
        }
}

void cpu_conv2d_backward_data(const struct cpu_call *call, const struct conv2d_backward_data *op)
{
    const struct conv2d_shape *shape = &op->shape;
    pack_turned(shape, call->kernel->columns, op->weight, op->workspace);
    correlation_run(call, &(struct correlation){
                              .gemm = call->kernel,
                              .view = {shape->oh, shape->ow, shape->o, shape->kernel - 1 - shape->padding,
                                       shape->stride, shape->w + shape->kernel - 1},
                              .b = shape->b,
                              .kernel = shape->kernel,
                              .stride = 1,
                              .oh = shape->h,
                              .ow = shape->w,
                              .o = shape->c,
                              .images = op->dy,
                              .packed = op->workspace,
                              .mask = op->relu_output,
                              .out = op->dx,
                          });
}
