/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "worker/device/cuda/each.cuh"

/* The factors that are the same for every element, rounded once. */
struct adamw {
    struct adamw_update op;
    float rate_over_correction1; /* rate / (1 - beta1^step) */
    float inverse_root_correction2;
    float keep; /* 1 - rate * weight_decay */
};

static __global__ void each_element(struct adamw job)
{
    const struct adamw_update &op = job.op;
    EACH(i, op.count);
    float g = op.gradients[i] * op.gradient_scale;
    float m = op.beta1 * op.m[i] + (1.0f - op.beta1) * g;
    float v = op.beta2 * op.v[i] + (1.0f - op.beta2) * g * g;
    float spread = sqrtf(v) * job.inverse_root_correction2 + op.epsilon;
    op.m[i] = m;
    op.v[i] = v;
    op.parameters[i] = op.parameters[i] * job.keep - job.rate_over_correction1 * m / spread;
}

void cuda_adamw_update(const struct cuda_call *call, const struct adamw_update *op)
{
    double step = (double)op->step;
    struct adamw job = {
        *op,
        (float)((double)op->rate / (1.0 - pow((double)op->beta1, step))),
        (float)(1.0 / sqrt(1.0 - pow((double)op->beta2, step))),
        1.0f - op->rate * op->weight_decay,
    };
    launch_each(call, op->count, each_element, job);
}
