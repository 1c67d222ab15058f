/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/device/cpu/cpu.h"

#define PIECE_ROWS 64

static void rows_piece(const void *context, int64_t piece, void *scratch)
{
    const struct copy_columns *op = context;
    int64_t end = (piece + 1) * PIECE_ROWS < op->rows ? (piece + 1) * PIECE_ROWS : op->rows;
    (void)scratch;
    for (int64_t row = piece * PIECE_ROWS; row < end; row++)
        memcpy(op->to + row * op->to_row, op->from + row * op->from_row, (size_t)op->columns * sizeof *op->to);
}

void cpu_copy_columns(const struct cpu_call *call, const struct copy_columns *op)
{
    team_run(call->team, (op->rows + PIECE_ROWS - 1) / PIECE_ROWS, rows_piece, op);
}
