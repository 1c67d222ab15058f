/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "worker/device/cpu/batch_norm.h"
#include "worker/device/cpu/batch_norm_shards.h"
#include "worker/device/cpu/lanes.h"
#include "worker/device/shard_exchange.h"

/* A block's sums, and its squares about the block's own mean; blocks are then joined in order (Chan et al. 1983). */
int64_t batch_norm_workspace(int64_t rows, int64_t c)
{
    return (2 * batch_norm_blocks(rows, c) + 2) * c;
}

/* Sixteen columns; every fourth row apart, since an addition waits for the one before it. */
static inline __attribute__((always_inline)) void measure_lanes(const float *x, int64_t rows, int64_t c, float *mean,
                                                                float *squares)
{
    lanes_vector sum[BATCH_NORM_PARTS] = {{0}}, square[BATCH_NORM_PARTS] = {{0}};
    int64_t fours = rows / BATCH_NORM_PARTS * BATCH_NORM_PARTS;
    for (int64_t r = 0; r < fours; r += BATCH_NORM_PARTS)
        for (int p = 0; p < BATCH_NORM_PARTS; p++)
            sum[p] += LANES_AT(x + (r + p) * c);
    for (int64_t r = fours; r < rows; r++)
        sum[0] += LANES_AT(x + r * c);
    lanes_vector middle = ((sum[0] + sum[1]) + (sum[2] + sum[3])) / (float)rows;
    for (int64_t r = 0; r < fours; r += BATCH_NORM_PARTS)
        for (int p = 0; p < BATCH_NORM_PARTS; p++) {
            lanes_vector distance = LANES_AT(x + (r + p) * c) - middle;
            square[p] += distance * distance;
        }
    for (int64_t r = fours; r < rows; r++)
        square[0] += (LANES_AT(x + r * c) - middle) * (LANES_AT(x + r * c) - middle);
    LANES_TO(mean) = middle;
    LANES_TO(squares) = (square[0] + square[1]) + (square[2] + square[3]);
}

static void measure_column(const float *x, int64_t rows, int64_t c, float *mean, float *squares)
{
    float sum = 0, square = 0;
    for (int64_t r = 0; r < rows; r++)
        sum += x[r * c];
    *mean = sum / (float)rows;
    for (int64_t r = 0; r < rows; r++)
        square += (x[r * c] - *mean) * (x[r * c] - *mean);
    *squares = square;
}

CPU_VECTORISED static void measure_block(const void *context, int64_t block, void *scratch)
{
    const struct batch_norm_forward *op = context;
    (void)scratch;
    int64_t c = op->c, rows = batch_norm_rows_of(op->rows, c, block), i = 0;
    const float *x = op->x + block * batch_norm_block_rows(c) * c;
    float *mean = op->workspace + 2 * block * c, *squares = mean + c;
    for (; i + LANES <= c; i += LANES)
        measure_lanes(x + i, rows, c, mean + i, squares + i);
    for (; i < c; i++)
        measure_column(x + i, rows, c, mean + i, squares + i);
}

struct moments {
    double count, mean, squares;
};

static void join(struct moments *all, struct moments part)
{
    double total = all->count + part.count, distance = part.mean - all->mean;
    all->mean += distance * part.count / total;
    all->squares += part.squares + distance * distance * all->count * part.count / total;
    all->count = total;
}

static struct moments join_blocks(const struct batch_norm_forward *op, int64_t column)
{
    struct moments all = {0};
    for (int64_t block = 0; block < batch_norm_blocks(op->rows, op->c); block++) {
        const float *part = op->workspace + 2 * block * op->c + column;
        double count = (double)batch_norm_rows_of(op->rows, op->c, block);
        join(&all, (struct moments){count, (double)part[0], (double)part[op->c]});
    }
    return all;
}

static struct moments join_shards(const struct batch_norm_forward *op, const double *shards, int64_t column)
{
    struct moments all = {0};
    for (unsigned s = 0; s < op->peers.exchange->shards; s++) {
        struct batch_norm_shard_values told = batch_norm_shard_values(shards, op->c, s, column);
        if (told.rows > 0)
            join(&all, (struct moments){told.rows, told.first, told.second});
    }
    return all;
}

static struct batch_norm_shard_values tell(const void *context, int64_t column)
{
    const struct batch_norm_forward *op = context;
    struct moments own = join_blocks(op, column);
    return (struct batch_norm_shard_values){(double)op->rows, own.mean, own.squares};
}

static void finish_column(const struct batch_norm_forward *op, const double *shards, int64_t i, float *slope,
                          float *start)
{
    struct moments m = shards ? join_shards(op, shards, i) : join_blocks(op, i);
    double variance = m.count > 0 ? m.squares / m.count : 0;
    op->mean[i] = (float)m.mean;
    op->rstd[i] = (float)(1.0 / sqrt(variance + (double)BATCH_NORM_EPSILON));
    op->variance[i] = (float)(m.count > 1 ? m.squares / (m.count - 1) : variance);
    slope[i] = op->weight[i] * op->rstd[i];
    start[i] = op->bias[i] - op->mean[i] * slope[i];
}

void cpu_batch_norm_forward(const struct cpu_call *call, const struct batch_norm_forward *op)
{
    int64_t blocks = batch_norm_blocks(op->rows, op->c);
    float *slope = op->workspace + 2 * blocks * op->c, *start = slope + op->c;
    team_run(call->team, blocks, measure_block, op);
    const double *shards = batch_norm_exchange(&op->peers, shard_point_forward(op->peers.layer), op->c, tell, op);
    for (int64_t i = 0; i < op->c; i++)
        finish_column(op, shards, i, slope, start);
    batch_norm_line(call, &(struct batch_norm_line){op->rows, op->c, op->x, slope, start, op->y,
                                                    op->activation == ACTIVATION_RELU, op->past});
}
