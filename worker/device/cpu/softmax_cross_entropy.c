/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "worker/device/cpu/cpu.h"
#include "worker/device/cpu/lanes.h"
#include "worker/device/cpu/vector_math.h"

#define PIECE_ROWS 16

/* Workspace of a row: its loss, and 1 when the largest logit (the first of equals) is the target. */
enum { ROW_LOSS, ROW_CORRECT, ROW_VALUES };

/* Classes that a thread's scratch holds at a time. */
#define SLICE ((int64_t)(CPU_SCRATCH_BYTES / sizeof(float)))

static inline __attribute__((always_inline)) int64_t slice_at(int64_t at, int64_t classes)
{
    return classes - at < SLICE ? classes - at : SLICE;
}

/* Returns their sum. */
static inline __attribute__((always_inline)) float fill_powers(const float *logits, int64_t count, float maximum,
                                                               float *restrict powers)
{
    for (int64_t j = 0; j < count; j++)
        powers[j] = vector_exp(logits[j] - maximum);
    return lanes_sum(powers, count);
}

static inline __attribute__((always_inline)) void run_row(const struct softmax_cross_entropy *op, int64_t row,
                                                          float *restrict powers)
{
    int64_t classes = op->classes, target = op->targets[row], first = 0, place = row * row_or_packed(op->row, classes);
    const float *logits = op->logits + place;
    float maximum = lanes_maximum(logits, classes), sum = 0;
    for (int64_t at = 0; at < classes; at += SLICE)
        sum += fill_powers(logits + at, slice_at(at, classes), maximum, powers);
    while (first < target && logits[first] != maximum)
        first++;
    op->workspace[row * ROW_VALUES + ROW_LOSS] = log((double)sum) + (double)maximum - (double)logits[target];
    op->workspace[row * ROW_VALUES + ROW_CORRECT] = first == target && logits[target] == maximum;
    if (!op->dlogits)
        return;
    float scale = op->values != NULL ? op->scale * op->values->loss_scale : op->scale;
    float *dlogits = op->dlogits + place, share = scale / sum;
    for (int64_t at = 0; at < classes; at += SLICE) {
        int64_t count = slice_at(at, classes);
        if (classes > SLICE)
            (void)fill_powers(logits + at, count, maximum, powers);
        for (int64_t j = 0; j < count; j++)
            dlogits[at + j] = powers[j] * share;
    }
    dlogits[target] -= scale;
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
            error_set(error, ERROR_INVALID,
                      "target %d is outside 0..%lld: the data has a class or token for which the model has no output; "
                      "correct the data or the model",
                      op->targets[row], (long long)op->classes - 1);
            return false;
        }
    return true;
}

void cpu_softmax_cross_entropy(const struct cpu_call *call, const struct softmax_cross_entropy *op)
{
    if (!targets_are_classes(op, call->error))
        return;
    team_run(call->team, (op->rows + PIECE_ROWS - 1) / PIECE_ROWS, run_piece, op);
    if (!op->sums)
        return;
    struct loss_sums sums = {.count = op->earlier + op->rows};
    for (int64_t row = -op->earlier; row < op->rows; row++) {
        sums.loss += op->workspace[row * ROW_VALUES + ROW_LOSS];
        sums.correct += op->workspace[row * ROW_VALUES + ROW_CORRECT] > 0;
    }
    *op->sums = sums;
}
