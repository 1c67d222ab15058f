/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/cpu.h"

CPU_VECTORISED static void run_piece(const void *context, int64_t piece, void *scratch)
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
    team_run(call->team, cpu_runs(op->count), run_piece, &job);
}
