/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/cpu.h"
#include "worker/device/cpu/vector_math.h"

CPU_VECTORISED static void run_piece(const void *context, int64_t piece, void *scratch)
{
    const struct gelu_backward *op = context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    const float *x = op->x + first, *dy = op->dy + first;
    float *dx = op->dx + first;
    for (int64_t i = 0; i < count; i++) {
        float square = x[i] * x[i];
        float t = vector_tanh(0.7978845608f * (x[i] + 0.044715f * x[i] * square));
        float inside = 0.7978845608f * (1.0f + 3.0f * 0.044715f * square);
        dx[i] = dy[i] * (0.5f * (1.0f + t) + 0.5f * x[i] * (1.0f - t * t) * inside);
    }
}

void cpu_gelu_backward(const struct cpu_call *call, const struct gelu_backward *op)
{
    team_run(call->team, cpu_runs(op->count), run_piece, op);
}
