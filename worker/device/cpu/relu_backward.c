/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/cpu.h"

CPU_VECTORISED static void run_piece(const void *context, int64_t piece, void *scratch)
{
    const struct relu_backward *op = context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    const float *y = op->y + first, *dy = op->dy + first;
    float *dx = op->dx + first;
    for (int64_t i = 0; i < count; i++)
        dx[i] = y[i] > 0 ? dy[i] : 0;
}

void cpu_relu_backward(const struct cpu_call *call, const struct relu_backward *op)
{
    team_run(call->team, cpu_runs(op->count), run_piece, op);
}
