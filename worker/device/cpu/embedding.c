/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/extremes.h"
#include "worker/device/cpu/cpu.h"

static void embed_example(const void *context, int64_t example, void *scratch)
{
    const struct embedding_forward *op = context;
    (void)scratch;
    for (int64_t t = 0; t < op->t; t++) {
        int64_t at = example * op->t + t;
        const float *token = op->token + op->tokens[at] * op->c, *position = op->position + t * op->c;
        for (int64_t i = 0; i < op->c; i++)
            op->y[at * op->c + i] = token[i] + position[i];
    }
}

void cpu_embedding_forward(const struct cpu_call *call, const struct embedding_forward *op)
{
    for (int64_t i = 0; i < op->b * op->t; i++)
        if (op->tokens[i] < 0 || op->tokens[i] >= op->vocabulary) {
            error_set(
                call->error, ERROR_INVALID,
                "token %d at position %lld is outside 0..%lld; correct the data or enlarge the model's vocabulary",
                op->tokens[i], (long long)(i % op->t), (long long)op->vocabulary - 1);
            return;
        }
    team_run(call->team, op->b, embed_example, op);
}

/* A piece owns a rectangle of the table, sums its gradient in scratch over all tokens in order, then stores it. */
#define PIECE_COLUMNS 16
#define PIECE_TOKENS 4096

static void store(float *to, const float *sums, int64_t count, bool accumulate)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = accumulate ? to[i] + sums[i] : sums[i];
}

CPU_VECTORISED static void token_piece(const void *context, int64_t piece, void *scratch)
{
    const struct embedding_backward *op = context;
    int64_t column_pieces = (op->c + PIECE_COLUMNS - 1) / PIECE_COLUMNS;
    int64_t column = piece % column_pieces * PIECE_COLUMNS, columns = int64_min(op->c - column, PIECE_COLUMNS);
    int64_t first = piece / column_pieces * PIECE_TOKENS, tokens = int64_min(op->vocabulary - first, PIECE_TOKENS);
    float *sums = scratch;
    memset(sums, 0, (size_t)(tokens * PIECE_COLUMNS) * sizeof *sums);
    for (int64_t i = 0; i < op->b * op->t; i++) {
        int64_t token = op->tokens[i] - first;
        if (token < 0 || token >= tokens)
            continue;
        for (int64_t j = 0; j < columns; j++)
            sums[token * PIECE_COLUMNS + j] += op->dy[i * op->c + column + j];
    }
    for (int64_t v = 0; v < tokens; v++)
        store(op->dtoken + (first + v) * op->c + column, sums + v * PIECE_COLUMNS, columns,
              op->accumulate || op->token_begun);
}

CPU_VECTORISED static void position_piece(const void *context, int64_t t, void *scratch)
{
    const struct embedding_backward *op = context;
    (void)scratch;
    for (int64_t column = 0; column < op->c; column += PIECE_COLUMNS) {
        float sums[PIECE_COLUMNS] = {0};
        int64_t columns = int64_min(op->c - column, PIECE_COLUMNS);
        for (int64_t b = 0; b < op->b; b++)
            for (int64_t j = 0; j < columns; j++)
                sums[j] += op->dy[(b * op->t + t) * op->c + column + j];
        store(op->dposition + t * op->c + column, sums, columns, op->accumulate);
    }
}

void cpu_embedding_backward(const struct cpu_call *call, const struct embedding_backward *op)
{
    int64_t column_pieces = (op->c + PIECE_COLUMNS - 1) / PIECE_COLUMNS;
    int64_t token_pieces = (op->vocabulary + PIECE_TOKENS - 1) / PIECE_TOKENS;
    team_run(call->team, column_pieces * token_pieces, token_piece, op);
    team_run(call->team, op->t, position_piece, op);
}
