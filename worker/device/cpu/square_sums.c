/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/cpu.h"
#include "worker/device/cpu/lanes.h"

CPU_VECTORISED static void sum_block(const void *context, int64_t block, void *scratch)
{
    const struct square_sums *op = context;
    (void)scratch;
    int64_t first = block * SQUARE_SUM_BLOCK, left = op->count - first;
    int64_t count = left < SQUARE_SUM_BLOCK ? left : SQUARE_SUM_BLOCK, whole = count / LANES * LANES;
    const float *x = op->x + first;
    double lanes[LANES] = {0}, sum = 0;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int j = 0; j < LANES; j++)
            lanes[j] += (double)x[i + j] * (double)x[i + j];
    for (int64_t i = whole; i < count; i++)
        sum += (double)x[i] * (double)x[i];
    for (int j = 0; j < LANES; j++)
        sum += lanes[j];
    op->sums[block] = sum;
}

void cpu_square_sums(const struct cpu_call *call, const struct square_sums *op)
{
    team_run(call->team, (op->count + SQUARE_SUM_BLOCK - 1) / SQUARE_SUM_BLOCK, sum_block, op);
}
