/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/cpu.h"
#include "worker/device/cpu/vector_math.h"

CPU_VECTORISED static void run_piece(const void *context, int64_t piece, void *scratch)
{
    const struct gelu_forward *op = context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    const float *x = op->x + first;
    float *y = op->y + first;
    for (int64_t i = 0; i < count; i++) {
        float inside = 0.7978845608f * (x[i] + 0.044715f * x[i] * x[i] * x[i]); /* sqrt(2 / pi) */
        y[i] = 0.5f * x[i] * (1.0f + vector_tanh(inside));
    }
}

void cpu_gelu_forward(const struct cpu_call *call, const struct gelu_forward *op)
{
    team_run(call->team, cpu_runs(op->count), run_piece, op);
}
