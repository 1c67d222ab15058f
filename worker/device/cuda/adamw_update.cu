/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/stored.cuh"

struct adamw {
    struct adamw_update op;
    struct update_factors factors; /* where op.values has none */
    bool aligned;
};

template <bool ALIGNED> static __device__ inline void update(const struct adamw &job, int64_t first, int64_t left)
{
    typedef element_pack<float> pack;
    const struct adamw_update &op = job.op;
    const pack gradients = read_pack<ALIGNED>(op.gradients + first, left);
    pack parameters = read_pack<ALIGNED>(op.parameters + first, left);
    pack m = read_pack<ALIGNED>(op.m + first, left), v = read_pack<ALIGNED>(op.v + first, left);
    if (op.values && op.values->refused)
        return;
    const struct update_factors factors = op.values ? op.values->factors : job.factors;
    const float scale = op.values ? op.values->gradient_scale : op.gradient_scale;
#pragma unroll
    for (int i = 0; i < pack::LENGTH; i++) {
        const float g = gradients.at[i] * scale;
        m.at[i] = op.beta1 * m.at[i] + (1.0f - op.beta1) * g;
        v.at[i] = op.beta2 * v.at[i] + (1.0f - op.beta2) * g * g;
        const float spread = sqrtf(v.at[i]) * factors.inverse_root_correction2 + op.epsilon;
        parameters.at[i] = parameters.at[i] * factors.keep - factors.rate_over_correction1 * m.at[i] / spread;
    }
    write_pack<ALIGNED>(op.m + first, m, left);
    write_pack<ALIGNED>(op.v + first, v, left);
    write_pack<ALIGNED>(op.parameters + first, parameters, left);
}

static __global__ void each_pack(struct adamw job)
{
    const int length = element_pack<float>::LENGTH;
    EACH(number, (job.op.count + length - 1) / length);
    const int64_t first = number * length, left = job.op.count - first;
    if (job.aligned && left >= length)
        update<true>(job, first, left);
    else
        update<false>(job, first, left);
}

void cuda_adamw_update(const struct cuda_call *call, const struct adamw_update *op)
{
    const int64_t length = element_pack<float>::LENGTH;
    struct adamw job = {*op, {0, 0, 0, 0}, are_aligned(op->parameters, op->m, op->v, op->gradients)};
    if (!op->values)
        job.factors = adamw_factors(op->rate, op->beta1, op->beta2, op->weight_decay, op->step);
    launch_each(call, (op->count + length - 1) / length, each_pack, job);
}
