/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "worker/device/cpu/cpu.h"

CPU_VECTORISED static void sgd_piece(const void *context, int64_t piece, void *scratch)
{
    const struct sgd_update op = *(const struct sgd_update *)context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op.count, piece);
    const float *gradients = op.gradients + first;
    float *restrict p = op.parameters + first;
    float *restrict velocity = op.velocity ? op.velocity + first : NULL;
    for (int64_t i = 0; i < count; i++) {
        float step = gradients[i] * op.gradient_scale + op.weight_decay * p[i];
        if (velocity)
            step = velocity[i] = op.momentum * velocity[i] + step;
        p[i] -= op.rate * step;
    }
}

void cpu_sgd_update(const struct cpu_call *call, const struct sgd_update *op)
{
    struct sgd_update job = *op;
    if (op->values != NULL && op->values->refused)
        return;
    if (op->values != NULL) {
        job.rate = op->values->factors.rate;
        job.gradient_scale = op->values->gradient_scale;
    }
    team_run(call->team, cpu_runs(op->count), sgd_piece, &job);
}

/* The factors that are the same for every element, rounded once. */
struct update_factors adamw_factors(float rate, float beta1, float beta2, float weight_decay, int64_t step)
{
    return (struct update_factors){
        .rate = rate,
        .rate_over_correction1 = (float)((double)rate / (1.0 - pow((double)beta1, (double)step))),
        .inverse_root_correction2 = (float)(1.0 / sqrt(1.0 - pow((double)beta2, (double)step))),
        .keep = 1.0f - rate * weight_decay,
    };
}

struct adamw {
    const struct adamw_update *op;
    struct update_factors factors;
    float gradient_scale;
};

CPU_VECTORISED static void adamw_piece(const void *context, int64_t piece, void *scratch)
{
    const struct adamw *job = context;
    const struct adamw_update *op = job->op;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    const float *restrict gradients = op->gradients + first;
    float *restrict p = op->parameters + first, *restrict m = op->m + first, *restrict v = op->v + first;
    float beta1 = op->beta1, beta2 = op->beta2, epsilon = op->epsilon, scale = job->gradient_scale;
    float rate = job->factors.rate_over_correction1, root = job->factors.inverse_root_correction2;
    float keep = job->factors.keep;
    for (int64_t i = 0; i < count; i++) {
        float g = gradients[i] * scale;
        m[i] = beta1 * m[i] + (1.0f - beta1) * g;
        v[i] = beta2 * v[i] + (1.0f - beta2) * g * g;
        float spread = __builtin_sqrtf(v[i]) * root + epsilon;
        p[i] = p[i] * keep - rate * m[i] / spread;
    }
}

void cpu_adamw_update(const struct cpu_call *call, const struct adamw_update *op)
{
    struct adamw job = {.op = op, .gradient_scale = op->gradient_scale};
    if (op->values != NULL && op->values->refused)
        return;
    if (op->values != NULL) {
        job.factors = op->values->factors;
        job.gradient_scale = op->values->gradient_scale;
    } else {
        job.factors = adamw_factors(op->rate, op->beta1, op->beta2, op->weight_decay, op->step);
    }
    team_run(call->team, cpu_runs(op->count), adamw_piece, &job);
}
