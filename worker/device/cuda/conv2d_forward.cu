/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/correlation.cuh"
#include "worker/device/cuda/each.cuh"

/* packed[kh][kw][c][o] = weight[o][c][kh][kw] */
static __global__ void pack_weight(struct conv2d_forward op)
{
    const struct conv2d_shape &s = op.shape;
    const int64_t window = s.kernel * s.kernel;
    EACH(i, s.o * s.c * window);
    op.workspace[(i % window * s.c + i / window % s.c) * s.o + i / window / s.c] = op.weight[i];
}

void cuda_conv2d_forward(const struct cuda_call *call, const struct conv2d_forward *op)
{
    const struct conv2d_shape *s = &op->shape;
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
