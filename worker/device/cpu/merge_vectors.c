/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/cpu.h"

CPU_VECTORISED static void run_piece(const void *context, int64_t piece, void *scratch)
{
    const struct merge_vectors *op = context;
    (void)scratch;
    int64_t first = piece * CPU_RUN, count = cpu_run_length(op->count, piece);
    for (int pair = 0; pair < op->pair_count; pair++) {
        float *into = op->pairs[pair].into + first;
        const float *from = op->pairs[pair].from + first;
        for (int64_t i = 0; i < count; i++)
            into[i] += from[i];
    }
}

void cpu_merge_vectors(const struct cpu_call *call, const struct merge_vectors *op)
{
    team_run(call->team, cpu_runs(op->count), run_piece, op);
}
