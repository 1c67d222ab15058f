/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "worker/device/cpu/cpu.h"
#include "worker/device/cpu/lanes.h"
#include "worker/device/cpu/vector_math.h"

#define PIECE_ROWS 16

/* Workspace of a row: its loss, and 1 when the largest logit (the first of equals) is the target. */
enum { ROW_LOSS, ROW_CORRECT, ROW_VALUES };

static inline __attribute__((always_inline)) void run_row(const struct softmax_cross_entropy *op, int64_t row,
                                                          float *restrict powers)
{
    int64_t classes = op->classes, target = op->targets[row], first = 0;
    const float *logits = op->logits + row * classes;
    float maximum = lanes_maximum(logits, classes);
    for (int64_t j = 0; j < classes; j++)
        powers[j] = vector_exp(logits[j] - maximum);
    float sum = lanes_sum(powers, classes);
    while (first < target && logits[first] != maximum)
        first++;
    op->workspace[row * ROW_VALUES + ROW_LOSS] = log((double)sum) + (double)maximum - (double)logits[target];
    op->workspace[row * ROW_VALUES + ROW_CORRECT] = first == target && logits[target] == maximum;
    if (!op->dlogits)
        return;
    float *dlogits = op->dlogits + row * classes, share = op->scale / sum;
    for (int64_t j = 0; j < classes; j++)
        dlogits[j] = powers[j] * share;
    dlogits[target] -= op->scale;
}

CPU_VECTORISED static void run_piece(const void *context, int64_t piece, void *scratch)
{
    const struct softmax_cross_entropy *op = context;
    int64_t end = (piece + 1) * PIECE_ROWS < op->rows ? (piece + 1) * PIECE_ROWS : op->rows;
    for (int64_t row = piece * PIECE_ROWS; row < end; row++)
        run_row(op, row, scratch);
}

static bool targets_are_classes(const struct softmax_cross_entropy *op, struct error *error)
{
    for (int64_t row = 0; row < op->rows; row++)
        if (op->targets[row] < 0 || op->targets[row] >= op->classes) {
            error_set(error, ERROR_INVALID, "target %d is outside 0..%lld", op->targets[row],
                      (long long)op->classes - 1);
            return false;
        }
    return true;
}

void cpu_softmax_cross_entropy(const struct cpu_call *call, const struct softmax_cross_entropy *op)
{
    if (!targets_are_classes(op, call->error))
        return;
    team_run(call->team, (op->rows + PIECE_ROWS - 1) / PIECE_ROWS, run_piece, op);
    struct loss_sums sums = {.count = op->rows};
    for (int64_t row = 0; row < op->rows; row++) {
        sums.loss += op->workspace[row * ROW_VALUES + ROW_LOSS];
        sums.correct += op->workspace[row * ROW_VALUES + ROW_CORRECT] > 0;
    }
    *op->sums = sums;
}
