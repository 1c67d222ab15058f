/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/conv2d.h"

void cpu_conv2d_forward(const struct cpu_call *call, const struct conv2d_forward *op)
{
    const struct conv2d_shape *shape = &op->shape;
    int64_t window = shape->kernel * shape->kernel;
    correlation_run(call, &(struct correlation){
                              .view = {shape->h, shape->w, shape->c, shape->padding, shape->w + 2 * shape->padding},
                              .b = shape->b,
                              .kernel = shape->kernel,
                              .step = shape->stride,
                              .spread = 1,
                              .padding = shape->padding,
                              .oh = shape->oh,
                              .ow = shape->ow,
                              .o = shape->o,
                              .weight = op->weight,
                              .column_stride = shape->c * window,
                              .channel_stride = window,
                              .images = op->x,
                              .bias = op->bias,
                              .out = op->y,
                              .workspace = op->workspace,
                              .relu = op->activation == ACTIVATION_RELU,
                          });
}
