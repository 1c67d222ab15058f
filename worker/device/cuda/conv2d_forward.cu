/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/convolution.h"
#include "worker/device/cuda/correlation.cuh"
#include "worker/device/cuda/each.cuh"
#include "worker/device/cuda/finish.cuh"
#include "worker/device/cuda/patches.cuh"

/* packed[kh][kw][c][o] = weight[o][c][kh][kw] */
static __global__ void pack_weight(struct conv2d_forward op)
{
    const struct conv2d_shape &s = op.shape;
    const int64_t window = s.kernel * s.kernel;
    EACH(i, s.o * s.c * window);
    op.workspace[(i % window * s.c + i / window % s.c) * s.o + i / window / s.c] = op.weight[i];
}

static void finish(const struct cuda_call *call, const struct conv2d_forward *op)
{
    const struct conv2d_shape *s = &op->shape;
    const struct product_finish job = {s->b * s->oh * s->ow,
                                       s->o,
                                       op->bias,
                                       op->activation == ACTIVATION_RELU,
                                       NULL,
                                       op->y, 0, NULL};
    finish_product(call, &job);
}

static void by_products(const struct cuda_call *call, const struct conv2d_forward *op)
{
    const struct conv2d_shape *s = &op->shape;
    const int64_t pixels = s->b * s->oh * s->ow;
    const struct patch_view view = {
        (const uint16_t *)op->x, s->b, s->h, s->w, s->c, s->kernel, s->stride, s->padding, 1, s->oh, s->ow};
    const struct patch_weights weights = {op->weight, (uint16_t *)op->workspace, s->o, s->c, s->kernel, 0,
                                          false};
    struct cuda_product product = {pixels,          s->o,  s->c, op->x, op->weight,
                                   op->y,           false, true, false, call->stored,
                                   call->stored, 0,     0, 0,   false};
    if (patches_are_pixels(s))
        cuda_multiply(call, &product);
    else
        multiply_patches(call, &view, &weights, op->y);
    finish(call, op);
}

void cuda_conv2d_forward(const struct cuda_call *call, const struct conv2d_forward *op)
{
    const struct conv2d_shape *s = &op->shape;
    if (cuda_convolve_forward(call, op)) {
        finish(call, op);
        return;
    }
    if (call->stored != STORED_FLOAT32) {
        by_products(call, op);
        return;
    }
    struct correlation job = {};
    job.view = {op->x,           (int)s->h, (int)s->w,  (int)s->c,  (int)s->kernel,      (int)s->stride,
                (int)s->padding, 1,         (int)s->oh, (int)s->ow, s->b * s->oh * s->ow};
    job.taps = (int)(s->kernel * s->kernel * s->c);
    job.o = (int)s->o;
    job.packed = op->workspace;
    job.bias = op->bias;
    job.out = op->y;
    job.relu = op->activation == ACTIVATION_RELU;
    launch_each(call, s->o * job.taps, pack_weight, *op);
    correlate(call, &job);
}
