/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "worker/device/cpu/cpu.h"

/* The factors that are the same for every element, rounded once. */
struct adamw {
    const struct adamw_update *op;
    float rate_over_correction1; /* rate / (1 - beta1^step) */
    float inverse_root_correction2;
    float keep; /* 1 - rate * weight_decay */
};

CPU_VECTORISED static void run_piece(const void *context, int64_t piece, void *scratch)
{
    const struct adamw *job = context;
    const struct adamw_update *op = job->op;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    const float *restrict gradients = op->gradients + first;
    float *restrict p = op->parameters + first, *restrict m = op->m + first, *restrict v = op->v + first;
    float beta1 = op->beta1, beta2 = op->beta2, epsilon = op->epsilon, scale = op->gradient_scale;
    float rate = job->rate_over_correction1, root = job->inverse_root_correction2, keep = job->keep;
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
    double step = (double)op->step;
    struct adamw job = {
        .op = op,
        .rate_over_correction1 = (float)((double)op->rate / (1.0 - pow((double)op->beta1, step))),
        .inverse_root_correction2 = (float)(1.0 / sqrt(1.0 - pow((double)op->beta2, step))),
        .keep = 1.0f - op->rate * op->weight_decay,
    };
    team_run(call->team, cpu_runs(op->count), run_piece, &job);
}
