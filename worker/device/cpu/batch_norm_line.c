/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/batch_norm.h"

CPU_VECTORISED static void run_block(const void *context, int64_t block, void *scratch)
{
    const struct batch_norm_line *line = context;
    (void)scratch;
    int64_t c = line->c, first = block * batch_norm_block_rows(c) * c;
    const float *restrict x = line->x + first, *restrict slope = line->slope, *restrict start = line->start;
    float *restrict y = line->y + first, least = line->relu ? 0 : -__builtin_inff();
    int64_t rows = batch_norm_rows_of(line->rows, c, block);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < c; i++) {
            float value = x[r * c + i] * slope[i] + start[i];
            y[r * c + i] = value > least ? value : least;
        }
}

void batch_norm_line(const struct cpu_call *call, const struct batch_norm_line *line)
{
    team_run(call->team, batch_norm_blocks(line->rows, line->c), run_block, line);
}
