/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/batch_norm.h"
#include "worker/device/cpu/batch_norm_shards.h"
#include "worker/device/cpu/lanes.h"
#include "worker/device/shard_exchange.h"

/* The mask between dy and the gradient of the normalised values: none, or that of the rectifier that the forward pass applied. If a sum
 * came before the rectifier, the mask is applied first, row by row, as the sums are made. */
struct mask {
    bool own;
    const float *slope, *start; /* [C], of x: as batch_norm_forward has them */
};

/* dy as it goes on, where it is not rectified any more. As loops: comparisons of whole vectors are taken apart. */
static inline __attribute__((always_inline)) void masked_lanes(const struct mask *mask, const float *x, const float *dy,
                                                               int64_t i, lanes_vector *to)
{
    float kept[LANES];
    if (mask->own)
        for (int j = 0; j < LANES; j++)
            kept[j] = x[j] * mask->slope[i + j] + mask->start[i + j] > 0 ? dy[j] : 0;
    *to = mask->own ? LANES_AT(kept) : LANES_AT(dy);
}

static inline __attribute__((always_inline)) float masked_one(const struct mask *mask, float x, float dy, int64_t i)
{
    return !mask->own || x * mask->slope[i] + mask->start[i] > 0 ? dy : 0;
}

/* Sixteen columns' sums of dy and of dy (x - mean), from column i on. */
static inline __attribute__((always_inline)) void sum_lanes(const struct batch_norm_backward *op,
                                                            const struct mask *mask, const float *x, const float *dy,
                                                            int64_t rows, int64_t i, float *sums, float *dots)
{
    lanes_vector sum[BATCH_NORM_PARTS] = {{0}}, dot[BATCH_NORM_PARTS] = {{0}}, middle = LANES_AT(op->mean + i);
    int64_t c = op->c, fours = rows / BATCH_NORM_PARTS * BATCH_NORM_PARTS;
    for (int64_t r = 0; r < fours; r += BATCH_NORM_PARTS)
        for (int p = 0; p < BATCH_NORM_PARTS; p++) {
            lanes_vector d;
            masked_lanes(mask, x + (r + p) * c + i, dy + (r + p) * c + i, i, &d);
            sum[p] += d;
            dot[p] += d * (LANES_AT(x + (r + p) * c + i) - middle);
        }
    for (int64_t r = fours; r < rows; r++) {
        lanes_vector d;
        masked_lanes(mask, x + r * c + i, dy + r * c + i, i, &d);
        sum[0] += d;
        dot[0] += d * (LANES_AT(x + r * c + i) - middle);
    }
    LANES_TO(sums + i) = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    LANES_TO(dots + i) = (dot[0] + dot[1]) + (dot[2] + dot[3]);
}

static inline __attribute__((always_inline)) void sum_rows(const struct batch_norm_backward *op, int64_t block,
                                                           const struct mask *mask)
{
    int64_t c = op->c, rows = batch_norm_rows_of(op->rows, c, block), first = block * batch_norm_block_rows(c) * c;
    const float *x = op->x + first, *dy = op->dy + first;
    float *sums = op->workspace + 2 * block * c, *dots = sums + c;
    int64_t i = 0;
    for (; i + LANES <= c; i += LANES)
        sum_lanes(op, mask, x, dy, rows, i, sums, dots);
    for (; i < c; i++) {
        sums[i] = dots[i] = 0;
        for (int64_t r = 0; r < rows; r++) {
            float d = masked_one(mask, x[r * c + i], dy[r * c + i], i);
            sums[i] += d;
            dots[i] += d * (x[r * c + i] - op->mean[i]);
        }
    }
}

/* dx = (dy - sum / rows - (x - mean) dot rstd^2 / rows) weight rstd, as dy * a + x * b + d. */
struct gradient_lines {
    const struct batch_norm_backward *op; /* its dy is the masked one if a sum came before the rectifier */
    const struct batch_norm_backward *whole;
    float *slope, *start; /* [C], behind all blocks */
    float *a, *b;         /* [C], where the sums of block 0 lay: a is the slope; d in its place */
    float *d;
};

/* Back through the rectifier of a sum. */
static inline __attribute__((always_inline)) void mask_sum(const struct batch_norm_backward *op, int64_t first,
                                                           int64_t count)
{
    const float *y = op->relu_output + first, *dy = op->dy + first;
    const float *others = op->others ? op->others + first : NULL;
    float *masked = op->masked + first;
    if (others)
        for (int64_t i = 0; i < count; i++)
            masked[i] = y[i] > 0 ? dy[i] + others[i] : 0;
    else
        for (int64_t i = 0; i < count; i++)
            masked[i] = y[i] > 0 ? dy[i] : 0;
}

CPU_VECTORISED static void sum_block(const void *context, int64_t block, void *scratch)
{
    const struct gradient_lines *lines = context;
    const int64_t c = lines->op->c;
    (void)scratch;
    if (lines->whole->relu_output)
        mask_sum(lines->whole, block * batch_norm_block_rows(c) * c, batch_norm_rows_of(lines->op->rows, c, block) * c);
    if (lines->op->activation == ACTIVATION_RELU)
        sum_rows(lines->op, block, &(struct mask){true, lines->slope, lines->start});
    else
        sum_rows(lines->op, block, &(struct mask){false, NULL, NULL});
}

static void store(float *to, double value, bool accumulate)
{
    *to = accumulate ? *to + (float)value : (float)value;
}

/* The sums of dy and of dy (x - mean) over some rows of a column. */
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
        struct batch_norm_shard_values told = batch_norm_shard_values(shards, op->c, s, i);
        all.rows += told.rows;
        all.sum += told.first;
        all.dot += told.second;
    }
    return all;
}

static struct batch_norm_shard_values tell(const void *context, int64_t column)
{
    struct sums own = add_blocks(context, column);
    return (struct batch_norm_shard_values){own.rows, own.sum, own.dot};
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
    lines->a[i] = (float)slope; /* of two floats in doubles: rounded once, as in batch_norm_forward */
    lines->b[i] = (float)back;
    lines->d[i] = (float)(-slope * all.sum / all.rows - back * (double)op->mean[i]);
}

static inline __attribute__((always_inline)) void write_rows(const struct gradient_lines *lines, int64_t block,
                                                             const struct mask *mask)
{
    const struct batch_norm_backward *op = lines->op;
    int64_t c = op->c, rows = batch_norm_rows_of(op->rows, c, block), first = block * batch_norm_block_rows(c) * c;
    const float *x = op->x + first, *dy = op->dy + first;
    float *dx = op->dx + first;
    int64_t i = 0;
    for (; i + LANES <= c; i += LANES) {
        lanes_vector a = LANES_AT(lines->a + i), b = LANES_AT(lines->b + i), d = LANES_AT(lines->d + i);
        for (int64_t at = i; at < rows * c; at += c) {
            lanes_vector back;
            masked_lanes(mask, x + at, dy + at, i, &back);
            LANES_TO(dx + at) = back * a + (LANES_AT(x + at) * b + d);
        }
    }
    for (; i < c; i++)
        for (int64_t at = i; at < rows * c; at += c)
            dx[at] = masked_one(mask, x[at], dy[at], i) * lines->a[i] + (x[at] * lines->b[i] + lines->d[i]);
}

CPU_VECTORISED static void write_block(const void *context, int64_t block, void *scratch)
{
    const struct gradient_lines *lines = context;
    (void)scratch;
    if (lines->op->activation == ACTIVATION_RELU)
        write_rows(lines, block, &(struct mask){true, lines->a, lines->start});
    else
        write_rows(lines, block, &(struct mask){false, NULL, NULL});
}

void cpu_batch_norm_backward(const struct cpu_call *call, const struct batch_norm_backward *whole)
{
    struct batch_norm_backward own = *whole;
    const struct batch_norm_backward *op = &own;
    const int64_t blocks = batch_norm_blocks(op->rows, op->c);
    float *behind = op->workspace + 2 * blocks * op->c;
    struct gradient_lines lines = {op, whole, behind, behind + op->c, op->workspace, op->workspace + op->c, behind};
    own.dy = whole->relu_output ? whole->masked : whole->dy;
    for (int64_t i = 0; i < op->c && op->activation == ACTIVATION_RELU; i++) {
        lines.slope[i] = op->weight[i] * op->rstd[i];
        lines.start[i] = op->bias[i] - op->mean[i] * lines.slope[i];
    }
    team_run(call->team, blocks, sum_block, &lines);
    const double *shards = batch_norm_exchange(&op->peers, shard_point_backward(op->peers.layer), op->c, tell, op);
    for (int64_t i = 0; i < op->c; i++)
        finish_column(&lines, shards, i);
    if (op->dx)
        team_run(call->team, blocks, write_block, &lines);
}
