/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/batch_norm.h"
#include "worker/device/cpu/lanes.h"

/* Sixteen columns, as a loop: comparisons of whole vectors are taken apart where registers are shorter. */
static inline __attribute__((always_inline)) void run_lanes(const float *restrict x, const float *restrict slope,
                                                            const float *restrict start, float *restrict y,
                                                            int64_t rows, int64_t c, bool relu)
{
    for (int64_t r = 0; r < rows; r++)
        for (int j = 0; j < LANES; j++) {
            float value = x[r * c + j] * slope[j] + start[j];
            y[r * c + j] = relu && value <= 0 ? 0 : value;
        }
}

CPU_VECTORISED static void run_block(const void *context, int64_t block, void *scratch)
{
    const struct batch_norm_line *line = context;
    (void)scratch;
    int64_t c = line->c, first = block * batch_norm_block_rows(c) * c, i = 0;
    int64_t rows = batch_norm_rows_of(line->rows, c, block);
    const float *x = line->x + first;
    float *y = line->y + first;
    for (; i + LANES <= c; i += LANES)
        if (line->relu)
            run_lanes(x + i, line->slope + i, line->start + i, y + i, rows, c, true);
        else
            run_lanes(x + i, line->slope + i, line->start + i, y + i, rows, c, false);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = i; j < c; j++) {
            float value = x[r * c + j] * line->slope[j] + line->start[j];
            y[r * c + j] = line->relu && value <= 0 ? 0 : value;
        }
}

void batch_norm_line(const struct cpu_call *call, const struct batch_norm_line *line)
{
    team_run(call->team, batch_norm_blocks(line->rows, line->c), run_block, line);
}
