/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/conv2d.h"

/* The gradient's lines, long enough for the last tap of the last pixel. */
static struct padded_image view_of(const struct conv2d_shape *shape, int64_t padding)
{
    int64_t left = padding > 0 ? padding / shape->stride : 0;
    int64_t last = (shape->w - 1 + shape->kernel - 1 - padding) / shape->stride;
    int64_t width = last + 1 > shape->ow ? last + 1 : shape->ow;
    return (struct padded_image){shape->oh, shape->ow, shape->o, left, left + width};
}

void cpu_conv2d_backward_data(const struct cpu_call *call, const struct conv2d_backward_data *op)
{
    const struct conv2d_shape *shape = &op->shape;
    int64_t window = shape->kernel * shape->kernel, padding = shape->kernel - 1 - shape->padding;
    correlation_run(call, &(struct correlation){
                              .view = view_of(shape, padding),
                              .b = shape->b,
                              .kernel = shape->kernel,
                              .step = 1,
                              .spread = shape->stride,
                              .padding = padding,
                              .oh = shape->h,
                              .ow = shape->w,
                              .o = shape->c,
                              .weight = op->weight,
                              .column_stride = window,
                              .channel_stride = shape->c * window,
                              .turned = true,
                              .images = op->dy,
                              .mask = op->relu_output,
                              .out = op->dx,
                              .workspace = op->workspace,
                          });
}
