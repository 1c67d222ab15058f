/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/batch_norm.h"
#include "worker/device/cpu/batch_norm_shards.h"
#include "worker/device/cpu/lanes.h"
#include "worker/device/shard_exchange.h"

/* Sixteen columns' sums of dy and of dy (x - mean). */
static inline __attribute__((always_inline)) void sum_lanes(const float *x, const float *dy, const float *mean,
                                                            int64_t rows, int64_t c, float *sums, float *dots)
{
    lanes_vector sum[BATCH_NORM_PARTS] = {{0}}, dot[BATCH_NORM_PARTS] = {{0}}, middle = LANES_AT(mean);
    int64_t fours = rows / BATCH_NORM_PARTS * BATCH_NORM_PARTS;
    for (int64_t r = 0; r < fours; r += BATCH_NORM_PARTS)
        for (int p = 0; p < BATCH_NORM_PARTS; p++) {
            lanes_vector d = LANES_AT(dy + (r + p) * c);
            sum[p] += d;
            dot[p] += d * (LANES_AT(x + (r + p) * c) - middle);
        }
    for (int64_t r = fours; r < rows; r++) {
        sum[0] += LANES_AT(dy + r * c);
        dot[0] += LANES_AT(dy + r * c) * (LANES_AT(x + r * c) - middle);
    }
    LANES_TO(sums) = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    LANES_TO(dots) = (dot[0] + dot[1]) + (dot[2] + dot[3]);
}

CPU_VECTORISED static void sum_block(const void *context, int64_t block, void *scratch)
{
    const struct batch_norm_backward *op = context;
    (void)scratch;
    int64_t c = op->c, rows = batch_norm_rows_of(op->rows, c, block), first = block * batch_norm_block_rows(c) * c;
    const float *x = op->x + first, *dy = op->dy + first;
    float *sums = op->workspace + 2 * block * c, *dots = sums + c;
    int64_t i = 0;
    for (; i + LANES <= c; i += LANES)
        sum_lanes(x + i, dy + i, op->mean + i, rows, c, sums + i, dots + i);
    for (; i < c; i++) {
        sums[i] = dots[i] = 0;
        for (int64_t r = 0; r < rows; r++) {
            sums[i] += dy[r * c + i];
            dots[i] += dy[r * c + i] * (x[r * c + i] - op->mean[i]);
        }
    }
}

/* dx = (dy - sum / rows - (x - mean) dot rstd^2 / rows) weight rstd, as dy * a + x * b + d. */
struct gradient_lines {
    const struct batch_norm_backward *op;
    float *a, *b; /* [C], where the sums of block 0 lay; d behind all blocks */
    float *d;
};

static void store(float *to, double value, bool accumulate)
{
    *to = accumulate ? *to + (float)value : (float)value;
}

/* Of a column, over some rows: the sums of dy and of dy (x - mean). */
struct sums {
    double rows, sum, dot;
};

static struct sums add_blocks(const struct batch_norm_backward *op, int64_t i)
{
    struct sums all = {.rows = (double)op->rows};
    for (int64_t block = 0; block < batch_norm_blocks(op->rows, op->c); block++) {
        all.sum += (double)op->workspace[2 * block * op->c + i];
        all.dot += (double)op->workspace[(2 * block + 1) * op->c + i];
    }
    return all;
}

static struct sums add_shards(const struct batch_norm_backward *op, const double *shards, int64_t i)
{
    struct sums all = {0};
    for (unsigned s = 0; s < op->peers.exchange->shards; s++) {
        struct batch_norm_told told = batch_norm_told(shards, op->c, s, i);
        all.rows += told.rows;
        all.sum += told.first;
        all.dot += told.second;
    }
    return all;
}

static struct batch_norm_told tell(const void *context, int64_t column)
{
    struct sums own = add_blocks(context, column);
    return (struct batch_norm_told){own.rows, own.sum, own.dot};
}

static void finish_column(const struct gradient_lines *lines, const double *shards, int64_t i)
{
    const struct batch_norm_backward *op = lines->op;
    struct sums own = add_blocks(op, i), all = shards ? add_shards(op, shards, i) : own;
    double rstd = (double)op->rstd[i];
    store(op->dbias + i, own.sum, op->accumulate);
    store(op->dweight + i, own.dot * rstd, op->accumulate);
    float part = op->rows > 0 ? op->share * op->momentum : 0;
    store(op->mean_step + i, (double)(part * (op->running_mean[i] - op->mean[i])), op->accumulate);
    store(op->variance_step + i, (double)(part * (op->running_variance[i] - op->variance[i])), op->accumulate);
    if (op->rows == 0)
        return;
    double slope = (double)op->weight[i] * rstd, back = -slope * rstd * rstd * all.dot / all.rows;
    lines->a[i] = (float)slope;
    lines->b[i] = (float)back;
    lines->d[i] = (float)(-slope * all.sum / all.rows - back * (double)op->mean[i]);
}

CPU_VECTORISED static void write_block(const void *context, int64_t block, void *scratch)
{
    const struct gradient_lines *lines = context;
    const struct batch_norm_backward *op = lines->op;
    (void)scratch;
    int64_t c = op->c, rows = batch_norm_rows_of(op->rows, c, block), first = block * batch_norm_block_rows(c) * c;
    const float *x = op->x + first, *dy = op->dy + first;
    float *dx = op->dx + first;
    int64_t i = 0;
    for (; i + LANES <= c; i += LANES) {
        lanes_vector a = LANES_AT(lines->a + i), b = LANES_AT(lines->b + i), d = LANES_AT(lines->d + i);
        for (int64_t at = i; at < rows * c; at += c)
            LANES_TO(dx + at) = LANES_AT(dy + at) * a + (LANES_AT(x + at) * b + d);
    }
    for (; i < c; i++)
        for (int64_t at = i; at < rows * c; at += c)
            dx[at] = dy[at] * lines->a[i] + (x[at] * lines->b[i] + lines->d[i]);
}

void cpu_batch_norm_backward(const struct cpu_call *call, const struct batch_norm_backward *op)
{
    int64_t blocks = batch_norm_blocks(op->rows, op->c);
    struct gradient_lines lines = {op, op->workspace, op->workspace + op->c, op->workspace + 2 * blocks * op->c};
    team_run(call->team, blocks, sum_block, op);
    const double *shards = batch_norm_ask_shards(&op->peers, shard_point_backward(op->peers.layer), op->c, tell, op);
    for (int64_t i = 0; i < op->c; i++)
        finish_column(&lines, shards, i);
    if (op->dx)
        team_run(call->team, blocks, write_block, &lines);
}
