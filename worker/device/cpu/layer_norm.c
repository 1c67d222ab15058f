/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

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

CPU_VECTORISED static void forward_piece(const void *context, int64_t piece, void *scratch)
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
    team_run(call->team, (op->rows + PIECE_ROWS - 1) / PIECE_ROWS, forward_piece, &norm);
}

/* Rows are cut into at most this many groups; each sums dweight and dbias on its own, then groups are added in order. */
#define GROUPS_MAX 16

int64_t layer_norm_workspace(int64_t rows, int64_t c)
{
    return (rows < GROUPS_MAX ? rows : GROUPS_MAX) * 2 * c;
}

static int64_t group_count(int64_t rows)
{
    return rows < GROUPS_MAX ? rows : GROUPS_MAX;
}

static inline __attribute__((always_inline)) void row_backward(const struct layer_norm_backward *op, int64_t row,
                                                               bool add, float *restrict dweight, float *restrict dbias)
{
    int64_t c = op->c;
    const float *x = op->x + row * c, *dy = op->dy + row * c, *weight = op->weight;
    float *dx = op->dx + row * c;
    float mean = op->mean[row], rstd = op->rstd[row];
    lanes_vector sum = {0}, dot = {0};
    int64_t whole = c / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES) {
        lanes_vector g = LANES_AT(dy + i) * LANES_AT(weight + i);
        sum += g;
        dot += g * ((LANES_AT(x + i) - mean) * rstd);
    }
    float sums[LANES], dots[LANES];
    memcpy(sums, &sum, sizeof sums);
    memcpy(dots, &dot, sizeof dots);
    for (int64_t i = whole; i < c; i++) {
        float g = dy[i] * weight[i];
        sums[i - whole] += g;
        dots[i - whole] += g * ((x[i] - mean) * rstd);
    }
    float average = lanes_total(sums) / (float)c, slope = lanes_total(dots) / (float)c;
    for (int64_t i = 0; i < c; i++) {
        float normal = (x[i] - mean) * rstd, g = dy[i];
        dweight[i] += g * normal;
        dbias[i] += g;
        float slid = (g * weight[i] - average - normal * slope) * rstd;
        dx[i] = add ? dx[i] + slid : slid;
    }
}

CPU_VECTORISED static void backward_group(const void *context, int64_t group, void *scratch)
{
    const struct layer_norm_backward *op = context;
    (void)scratch;
    int64_t groups = group_count(op->rows);
    float *sums = op->workspace + group * 2 * op->c;
    memset(sums, 0, (size_t)(2 * op->c) * sizeof *sums);
    for (int64_t row = op->rows * group / groups; row < op->rows * (group + 1) / groups; row++)
        if (op->add)
            row_backward(op, row, true, sums, sums + op->c);
        else
            row_backward(op, row, false, sums, sums + op->c);
}

static void finish(float *to, const float *sums, int64_t groups, int64_t c, bool accumulate)
{
    for (int64_t i = 0; i < c; i++) {
        float total = 0;
        for (int64_t g = 0; g < groups; g++)
            total += sums[g * 2 * c + i];
        to[i] = accumulate ? to[i] + total : total;
    }
}

void cpu_layer_norm_backward(const struct cpu_call *call, const struct layer_norm_backward *op)
{
    int64_t groups = group_count(op->rows);
    team_run(call->team, groups, backward_group, op);
    finish(op->dweight, op->workspace, groups, op->c, op->accumulate);
    finish(op->dbias, op->workspace + op->c, groups, op->c, op->accumulate);
}
