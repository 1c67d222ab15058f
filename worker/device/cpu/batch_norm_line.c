/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/batch_norm.h"
#include "worker/device/cpu/lanes.h"

/* Computes `columns` columns in a loop, because compilers split comparisons of whole vectors if registers are shorter. */
static inline __attribute__((always_inline)) void run_columns(const struct batch_norm_line *line, int64_t first,
                                                              int64_t rows, int64_t columns, bool relu, bool adds)
{
    const int64_t c = line->c, column = first % c;
    const float *restrict x = line->x + first, *restrict past = adds ? line->past + first : NULL;
    const float *restrict slope = line->slope + column, *restrict start = line->start + column;
    float *restrict y = line->y + first;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < columns; j++) {
            float value = x[r * c + j] * slope[j] + start[j];
            value = adds ? value + past[r * c + j] : value;
            y[r * c + j] = relu && value <= 0 ? 0 : value;
        }
}

static inline __attribute__((always_inline)) void run_rows(const struct batch_norm_line *line, int64_t block, bool relu,
                                                           bool adds)
{
    int64_t c = line->c, first = block * batch_norm_block_rows(c) * c, i = 0;
    int64_t rows = batch_norm_rows_of(line->rows, c, block);
    for (; i + LANES <= c; i += LANES)
        run_columns(line, first + i, rows, LANES, relu, adds);
    if (i < c)
        run_columns(line, first + i, rows, c - i, relu, adds);
}

CPU_VECTORISED static void run_block(const void *context, int64_t block, void *scratch)
{
    const struct batch_norm_line *line = context;
    (void)scratch;
    if (line->past && line->relu)
        run_rows(line, block, true, true);
    else if (line->past)
        run_rows(line, block, false, true);
    else if (line->relu)
        run_rows(line, block, true, false);
    else
        run_rows(line, block, false, false);
}

void batch_norm_line(const struct cpu_call *call, const struct batch_norm_line *line)
{
    team_run(call->team, batch_norm_blocks(line->rows, line->c), run_block, line);
}
