/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/each.cuh"

struct adamw {
    struct adamw_update op;
    struct update_factors factors; /* where op.values has none */
};

static __global__ void each_element(struct adamw job)
{
    const struct adamw_update &op = job.op;
    EACH(i, op.count);
    if (op.values && op.values->refused)
        return;
    const struct update_factors factors = op.values ? op.values->factors : job.factors;
    float g = op.gradients[i] * (op.values ? op.values->gradient_scale : op.gradient_scale);
    float m = op.beta1 * op.m[i] + (1.0f - op.beta1) * g;
    float v = op.beta2 * op.v[i] + (1.0f - op.beta2) * g * g;
    float spread = sqrtf(v) * factors.inverse_root_correction2 + op.epsilon;
    op.m[i] = m;
    op.v[i] = v;
    op.parameters[i] = op.parameters[i] * factors.keep - factors.rate_over_correction1 * m / spread;
}

void cuda_adamw_update(const struct cuda_call *call, const struct adamw_update *op)
{
    struct adamw job = {*op, {0, 0, 0, 0}};
    if (!op->values)
        job.factors = adamw_factors(op->rate, op->beta1, op->beta2, op->weight_decay, op->step);
    launch_each(call, op->count, each_element, job);
}
