/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/cpu.h"
#include "worker/device/stochastic_rounding.h"

/* Blocks of four words that are drawn at a time, apart from what they are for: loops of one kind of work each. */
#define BLOCKS 256

CPU_VECTORISED static void draw(const struct stochastic_round *op, int64_t first_block, uint32_t *words)
{
    const uint32_t step = stochastic_step(op);
    for (int64_t i = 0; i < BLOCKS; i++) {
        const struct philox_words four = stochastic_words(op->key, step, first_block + i);
        for (int k = 0; k < 4; k++)
            words[4 * i + k] = four.word[k];
    }
}

CPU_VECTORISED static void round_by(bool to_float16, int64_t count, const float *x, const uint32_t *words, float *y)
{
    if (to_float16)
        for (int64_t i = 0; i < count; i++)
            y[i] = float16_round_by(x[i], words[i]);
    else
        for (int64_t i = 0; i < count; i++)
            y[i] = bfloat16_round_by(x[i], words[i]);
}

static void run_piece(const void *context, int64_t piece, void *scratch)
{
    const struct stochastic_round *op = context;
    (void)scratch;
    uint32_t words[4 * BLOCKS];
    int64_t end = piece * CPU_RUN + cpu_run_length(op->count, piece);
    for (int64_t i = piece * CPU_RUN; i < end;) {
        const int64_t number = op->first + i, skipped = number % 4;
        int64_t count = 4 * BLOCKS - skipped;
        if (count > end - i)
            count = end - i;
        draw(op, number / 4, words);
        round_by(op->to_float16, count, op->x + i, words + skipped, op->y + i);
        i += count;
    }
}

void cpu_stochastic_round(const struct cpu_call *call, const struct stochastic_round *op)
{
    team_run(call->team, cpu_runs(op->count), run_piece, op);
}
