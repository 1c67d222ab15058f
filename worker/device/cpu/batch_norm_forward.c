/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "worker/device/cpu/batch_norm.h"
#include "worker/device/cpu/batch_norm_shards.h"
#include "worker/device/shard_exchange.h"

/* A block's sums, and its squares about the block's own mean; blocks are then joined in order (Chan et al. 1983). */
int64_t batch_norm_workspace(int64_t rows, int64_t c)
{
    return (2 * batch_norm_blocks(rows, c) + 2) * c;
}

CPU_VECTORISED static void measure_block(const void *context, int64_t block, void *scratch)
{
    const struct batch_norm_forward *op = context;
    (void)scratch;
    int64_t c = op->c, rows = batch_norm_rows_of(op->rows, c, block);
    const float *restrict x = op->x + block * batch_norm_block_rows(c) * c;
    float *restrict mean = op->workspace + 2 * block * c, *restrict squares = mean + c;
    memset(mean, 0, (size_t)(2 * c) * sizeof *mean);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < c; i++)
            mean[i] += x[r * c + i];
    for (int64_t i = 0; i < c; i++)
        mean[i] /= (float)rows;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < c; i++)
            squares[i] += (x[r * c + i] - mean[i]) * (x[r * c + i] - mean[i]);
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
        struct batch_norm_told told = batch_norm_told(shards, op->c, s, column);
        if (told.rows > 0)
            join(&all, (struct moments){told.rows, told.first, told.second});
    }
    return all;
}

static struct batch_norm_told tell(const void *context, int64_t column)
{
    const struct batch_norm_forward *op = context;
    struct moments own = join_blocks(op, column);
    return (struct batch_norm_told){(double)op->rows, own.mean, own.squares};
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
    const double *shards = batch_norm_ask_shards(&op->peers, shard_point_forward(op->peers.layer), op->c, tell, op);
    for (int64_t i = 0; i < op->c; i++)
        finish_column(op, shards, i, slope, start);
    batch_norm_line(call, &(struct batch_norm_line){op->rows, op->c, op->x, slope, start, op->y,
                                                    op->activation == ACTIVATION_RELU});
}
