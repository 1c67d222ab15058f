/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/cpu.h"
#include "worker/device/float16.h"

CPU_VECTORISED static void run_piece(const void *context, int64_t piece, void *scratch)
{
    const struct round_float16 *op = context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    const float *x = op->x + first;
    float *y = op->y + first;
    for (int64_t i = 0; i < count; i++)
        y[i] = float16_round(x[i]);
}

void cpu_round_float16(const struct cpu_call *call, const struct round_float16 *op)
{
    team_run(call->team, cpu_runs(op->count), run_piece, op);
}
