/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/cpu.h"

CPU_VECTORISED static void run_piece(const void *context, int64_t piece, void *scratch)
{
    const struct add_forward *op = context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    const float *a = op->a + first, *b = op->b + first;
    float *y = op->y + first;
    if (op->activation == ACTIVATION_RELU)
        for (int64_t i = 0; i < count; i++)
            y[i] = a[i] + b[i] <= 0 ? 0 : a[i] + b[i];
    else
        for (int64_t i = 0; i < count; i++)
            y[i] = a[i] + b[i];
}

void cpu_add_forward(const struct cpu_call *call, const struct add_forward *op)
{
    team_run(call->team, cpu_runs(op->count), run_piece, op);
}
