/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/cpu.h"
#include "worker/device/dropout_word.h"

/* Blocks of four elements that a piece has. */
#define PIECE_BLOCKS 4096

static int64_t blocks_of(const struct dropout *op)
{
    return (op->elements + 3) / 4;
}

static int64_t pieces_of(const struct dropout *op)
{
    return (blocks_of(op) + PIECE_BLOCKS - 1) / PIECE_BLOCKS;
}

CPU_VECTORISED static void run_piece(const void *context, int64_t piece, void *scratch)
{
    const struct dropout *op = context;
    (void)scratch;
    int64_t example = piece / pieces_of(op), first = piece % pieces_of(op) * PIECE_BLOCKS;
    int64_t end = first + PIECE_BLOCKS < blocks_of(op) ? first + PIECE_BLOCKS : blocks_of(op);
    const float *x = op->x + example * op->elements;
    float *y = op->y + example * op->elements, keep = 1.0f / (1.0f - op->rate);
    uint32_t limit = dropout_limit(op->rate);
    for (int64_t block = first; block < end; block++) {
        struct philox_words words = dropout_words(op, example, block);
        for (int64_t i = 4 * block; i < 4 * block + 4 && i < op->elements; i++)
            y[i] = words.word[i % 4] < limit ? 0 : x[i] * keep;
    }
}

void cpu_dropout(const struct cpu_call *call, const struct dropout *op)
{
    team_run(call->team, op->examples * pieces_of(op), run_piece, op);
}
