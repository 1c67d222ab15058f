/* SPDX-License-Identifier: Apache-2.0 */
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
