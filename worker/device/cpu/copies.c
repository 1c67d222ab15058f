/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of memory and of columns of a matrix.
 */
#include <string.h>

#include "worker/device/cpu/cpu.h"

#define PIECE_BYTES (128 * 1024)

static void copy_piece(const void *context, int64_t piece, void *scratch)
{
    const struct copy *op = context;
    (void)scratch;
    int64_t first = piece * PIECE_BYTES, left = op->bytes - first;
    memcpy((char *)op->to + first, (const char *)op->from + first, (size_t)(left < PIECE_BYTES ? left : PIECE_BYTES));
}

void cpu_copy(const struct cpu_call *call, const struct copy *op)
{
    team_run(call->team, (op->bytes + PIECE_BYTES - 1) / PIECE_BYTES, copy_piece, op);
}

#define PIECE_ROWS 64

static void copy_columns_piece(const void *context, int64_t piece, void *scratch)
{
    const struct copy_columns *op = context;
    int64_t end = (piece + 1) * PIECE_ROWS < op->rows ? (piece + 1) * PIECE_ROWS : op->rows;
    (void)scratch;
    for (int64_t row = piece * PIECE_ROWS; row < end; row++)
        memcpy(op->to + row * op->to_row, op->from + row * op->from_row, (size_t)op->columns * sizeof *op->to);
}

void cpu_copy_columns(const struct cpu_call *call, const struct copy_columns *op)
{
    team_run(call->team, (op->rows + PIECE_ROWS - 1) / PIECE_ROWS, copy_columns_piece, op);
}
