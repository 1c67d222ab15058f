/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/cpu.h"

#define PIECE_ROWS 16

static void run_row(const struct mean_squared_error *op, int64_t row)
{
    const float *y = op->y + row * op->width, *targets = op->targets + row * op->width;
    float scale = op->values != NULL ? op->scale * op->values->loss_scale : op->scale;
    float slope = 2.0f * scale / (float)op->width;
    double sum = 0;
    for (int64_t j = 0; j < op->width; j++) {
        float difference = y[j] - targets[j];
        sum += (double)difference * (double)difference;
        if (op->dy)
            op->dy[row * op->width + j] = slope * difference;
    }
    op->workspace[row] = sum / (double)op->width;
}

static void run_piece(const void *context, int64_t piece, void *scratch)
{
    const struct mean_squared_error *op = context;
    (void)scratch;
    int64_t end = (piece + 1) * PIECE_ROWS < op->rows ? (piece + 1) * PIECE_ROWS : op->rows;
    for (int64_t row = piece * PIECE_ROWS; row < end; row++)
        run_row(op, row);
}

void cpu_mean_squared_error(const struct cpu_call *call, const struct mean_squared_error *op)
{
    team_run(call->team, (op->rows + PIECE_ROWS - 1) / PIECE_ROWS, run_piece, op);
    struct loss_sums sums = {.count = op->rows};
    for (int64_t row = 0; row < op->rows; row++)
        sums.loss += op->workspace[row];
    *op->sums = sums;
}
