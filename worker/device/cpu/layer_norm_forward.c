/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "worker/device/cpu/cpu.h"
#include "worker/device/cpu/lanes.h"

#define PIECE_ROWS 32
#define EPSILON 1e-5f

static inline __attribute__((always_inline)) void normalise(const struct layer_norm_forward *op, int64_t row)
{
    int64_t c = op->c;
    const float *x = op->x + row * c, *weight = op->weight, *bias = op->bias;
    float *y = op->y + row * c;
    float mean = lanes_sum(x, c) / (float)c;
    for (int64_t i = 0; i < c; i++)
        y[i] = x[i] - mean;
    float rstd = 1.0f / __builtin_sqrtf(lanes_dot(y, y, c) / (float)c + EPSILON);
    for (int64_t i = 0; i < c; i++)
        y[i] = y[i] * rstd * weight[i] + bias[i];
    op->mean[row] = mean;
    op->rstd[row] = rstd;
}

CPU_VECTORISED static void run_piece(const void *context, int64_t piece, void *scratch)
{
    const struct layer_norm_forward *op = context;
    (void)scratch;
    int64_t end = (piece + 1) * PIECE_ROWS < op->rows ? (piece + 1) * PIECE_ROWS : op->rows;
    for (int64_t row = piece * PIECE_ROWS; row < end; row++)
        normalise(op, row);
}

void cpu_layer_norm_forward(const struct cpu_call *call, const struct layer_norm_forward *op)
{
    struct layer_norm_forward norm = *op;
    if (op->past) {
        cpu_add_forward(call, &(struct add_forward){op->rows * op->c, op->x, op->past, op->sum, ACTIVATION_NONE});
        norm.x = op->sum;
    }
    team_run(call->team, (op->rows + PIECE_ROWS - 1) / PIECE_ROWS, run_piece, &norm);
}
