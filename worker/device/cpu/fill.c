/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/cpu.h"

CPU_VECTORISED static void run_piece(const void *context, int64_t piece, void *scratch)
{
    const struct fill *op = context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    float *x = op->x + first;
    for (int64_t i = 0; i < count; i++)
        x[i] = op->value;
}

void cpu_fill(const struct cpu_call *call, const struct fill *op)
{
    team_run(call->team, cpu_runs(op->count), run_piece, op);
}
