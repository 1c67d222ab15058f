/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/convolution.h"
#include "worker/device/cuda/correlation.cuh"
#include "worker/device/cuda/each.cuh"
#include "worker/device/cuda/finish.cuh"
#include "worker/device/cuda/patches.cuh"

/* packed[kh][kw][o][c] = weight[o][c][K-1-kh][K-1-kw]: the kernel turned by half a turn. */
static __global__ void pack_turned_weight(struct conv2d_backward_data op)
{
    const struct conv2d_shape &s = op.shape;
    const int64_t window = s.kernel * s.kernel;
    EACH(i, s.o * s.c * window);
    const int64_t turned = window - 1 - i % window;
    op.workspace[(turned * s.o + i / window / s.c) * s.c + i / window % s.c] = op.weight[i];
}

static void finish(const struct cuda_call *call, const struct conv2d_backward_data *op)
{
    const struct conv2d_shape *s = &op->shape;
    const struct product_finish job = {s->b * s->h * s->w, s->c, NULL, false, op->relu_output, op->dx, 0, NULL};
    finish_product(call, &job);
}

static void by_products(const struct cuda_call *call, const struct conv2d_backward_data *op)
{
    const struct conv2d_shape *s = &op->shape;
    const int64_t pixels = s->b * s->h * s->w;
    const struct patch_view view = {(const uint16_t *)op->dy, s->b,      s->oh, s->ow, s->o, s->kernel, 1,
                                    s->kernel - 1 - s->padding,      s->stride, s->h,  s->w};
    const struct patch_weights weights = {op->weight, (uint16_t *)op->workspace, s->o, s->c, s->kernel, 0, true};
    struct cuda_product product = {pixels,          s->c,  s->o,  op->dy, op->weight,
                                   op->dx,          false, false, false,  call->stored,
                                   call->stored, 0, 0, 0, false};
    if (patches_are_pixels(s))
        cuda_multiply(call, &product);
    else
        multiply_patches(call, &view, &weights, op->dx);
    finish(call, op);
}

/* The correlation of the dilated gradient with the turned kernel. */
void cuda_conv2d_backward_data(const struct cuda_call *call, const struct conv2d_backward_data *op)
{
    const struct conv2d_shape *s = &op->shape;
    if (cuda_convolve_backward_data(call, op)) {
        finish(call, op);
        return;
    }
    if (call->stored != STORED_FLOAT32) {
        by_products(call, op);
        return;
    }
    struct correlation job = {};
    job.view = {
        op->dy,         (int)s->oh, (int)s->ow, (int)s->o,         (int)s->kernel, 1, (int)(s->kernel - 1 - s->padding),
        (int)s->stride, (int)s->h,  (int)s->w,  s->b * s->h * s->w};
    job.taps = (int)(s->kernel * s->kernel * s->o);
    job.o = (int)s->c;
    job.packed = op->workspace;
    job.mask = op->relu_output;
    job.out = op->dx;
    launch_each(call, s->c * job.taps, pack_turned_weight, *op);
    correlate(call, &job);
}
