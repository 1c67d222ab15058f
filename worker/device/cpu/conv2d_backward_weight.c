/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/device/cpu/conv2d.h"
#include "worker/device/cpu/lanes.h"
#include "worker/device/cpu/pack.h"

/* The batch is cut into at most this many groups of images; each sums on its own, then groups are added in order. */
#define GROUPS_MAX 16
#define DY_BAND_BYTES (192 * 1024)
/* Lines of both operands that all taps pass over stay in the nearest cache, unless that were very few pixels. */
#define NEAR_BYTES (32 * 1024)
#define NEAR_PIXELS_MIN 64
/* Fewer taps side by side would leave registers empty. */
#define LINE_TAPS_MIN 6

struct weight_gradient {
    const struct gemm_kernel *gemm;
    const struct conv2d_backward_weight *op;
    struct padded_image view;
    int64_t groups;
    int64_t taps;    /* kernel * kernel * c rows of a group's sums, the bias row behind them */
    int64_t columns; /* o, rounded up to whole vectors */
};

static int64_t padded_taps(int64_t taps)
{
    return (taps + GEMM_ROWS - 1) / GEMM_ROWS * GEMM_ROWS;
}

static int64_t group_floats(const struct weight_gradient *job)
{
    return (padded_taps(job->taps) + 1) * job->columns;
}

int64_t conv2d_workspace(const struct conv2d_shape *shape)
{
    int64_t window = shape->kernel * shape->kernel;
    int64_t groups = shape->b < GROUPS_MAX ? shape->b : GROUPS_MAX;
    int64_t sums = groups * (padded_taps(window * shape->c) + 1) * ((shape->o + 15) / 16 * 16);
    int64_t forward = correlation_workspace(shape->kernel, shape->c, shape->o);
    int64_t backward = correlation_workspace(shape->kernel, shape->o, shape->c);
    int64_t packed = forward > backward ? forward : backward;
    return sums > packed ? sums : packed;
}

/* One band of one image. */
struct gradient_band {
    const float *x;  /* padded input rows */
    const float *dy; /* output rows, `columns` floats a pixel */
    int64_t rows;
    bool first; /* of the group: sums start here */
};

/* The taps of a kernel row are contiguous: it handles as many as there are registers for, over one or two vectors of columns. */
static void add_lines(const struct weight_gradient *job, const struct gradient_band *band, float *sums)
{
    const struct conv2d_shape *shape = &job->op->shape;
    const struct gemm_kernel *gemm = job->gemm;
    int64_t pitch = job->view.width * shape->c, beside = shape->kernel * shape->c;
    struct gemm_line line = {
        .a_row = 1,
        .a_inner = shape->stride * shape->c,
        .a_outer = shape->stride * pitch,
        .b_inner = job->columns,
        .b_outer = shape->ow * job->columns,
        .inner = shape->ow,
        .outer = band->rows,
        .c_row = job->columns,
        .accumulate = !band->first,
    };
    for (int64_t column = 0; column < job->columns; column += GEMM_LINE_VECTORS_MAX * gemm->vector) {
        int vectors = job->columns - column > gemm->vector ? 2 : 1;
        line.b = band->dy + column;
        for (int64_t tap = 0, count; tap < job->taps; tap += count) {
            int64_t at = tap % beside;
            count = conv2d_piece(beside - at, gemm->line_rows[vectors - 1]);
            line.a = band->x + tap / beside * pitch + at;
            line.c = sums + tap * job->columns + column;
            gemm->line[vectors - 1][count - 1](&line);
        }
    }
}

static void add_tiles(const struct weight_gradient *job, const struct gradient_band *band, float *sums)
{
    const struct conv2d_shape *shape = &job->op->shape;
    int64_t pitch = job->view.width * shape->c;
    struct gemm_tile tile = {
        .a_inner = shape->stride * shape->c,
        .a_outer = shape->stride * pitch,
        .b_inner = job->columns,
        .b_outer = shape->ow * job->columns,
        .inner = shape->ow,
        .outer = band->rows,
        .c_row = job->columns,
        .accumulate = !band->first,
    };
    for (int64_t column = 0; column < job->columns; column += job->gemm->columns) {
        int64_t columns = job->columns - column < job->gemm->columns ? job->columns - column : job->gemm->columns;
        for (int64_t tap = 0; tap < job->taps; tap += GEMM_ROWS) {
            for (int64_t r = 0; r < GEMM_ROWS; r++) {
                int64_t at = tap + r < job->taps ? tap + r : job->taps - 1;
                int64_t row = at / (shape->kernel * shape->c);
                tile.a[r] = band->x + row * pitch + at % (shape->kernel * shape->c);
            }
            tile.b = band->dy + column;
            tile.c = sums + tap * job->columns + column;
            job->gemm->tile[(columns - 1) / job->gemm->vector](&tile);
        }
    }
}

/* Sums every fourth pixel separately, so that additions need not wait for each other. */
CPU_VECTORISED static void add_bias(const struct weight_gradient *job, const struct gradient_band *band, float *sums)
{
    int64_t columns = job->columns, pixels = band->rows * job->op->shape.ow, fours = pixels / 4 * 4, j = 0;
    for (; j + LANES <= columns; j += LANES) {
        lanes_vector part[4] = {{0}};
        const float *row = band->dy + j;
        for (int64_t p = 0; p < fours; p += 4, row += 4 * columns)
            for (int i = 0; i < 4; i++)
                part[i] += LANES_AT(row + i * columns);
        for (int64_t p = fours; p < pixels; p++, row += columns)
            part[0] += LANES_AT(row);
        lanes_vector sum = (part[0] + part[1]) + (part[2] + part[3]);
        if (!band->first)
            sum += LANES_AT(sums + j);
        LANES_TO(sums + j) = sum;
    }
    for (; j < columns; j++) {
        float sum = band->first ? 0 : sums[j];
        for (int64_t p = 0; p < pixels; p++)
            sum += band->dy[p * columns + j];
        sums[j] = sum;
    }
}

/* The gradient's rows with whole vectors a pixel: in place when o fills them, else a copy. */
static const float *whole_vectors(const struct weight_gradient *job, const float *dy, int64_t pixels, float *buffer)
{
    int64_t o = job->op->shape.o;
    if (o == job->columns)
        return dy;
    pack_rows(dy, o, pixels, o, buffer, job->columns);
    return buffer;
}

static int64_t within(int64_t value, int64_t least, int64_t most)
{
    value = value < least ? least : value;
    return value < most ? value : most;
}

/* Returns how many output lines have operands that fit the buffers into which they may be copied. */
static int64_t lines_of_a_band(const struct weight_gradient *job)
{
    const struct conv2d_shape *shape = &job->op->shape;
    int64_t lines = shape->oh, dy_fitting = DY_BAND_BYTES / (int64_t)sizeof(float) / (shape->ow * job->columns);
    if (!padded_image_is_plain(&job->view))
        lines = within((padded_image_fitting(&job->view) - shape->kernel) / shape->stride + 1, 1, lines);
    return shape->o == job->columns ? lines : within(dy_fitting, 1, lines);
}

static int64_t near_lines(const struct weight_gradient *job)
{
    const struct conv2d_shape *shape = &job->op->shape;
    int64_t floats = shape->stride * job->view.width * shape->c + shape->ow * job->columns;
    int64_t fitting = NEAR_BYTES / (int64_t)sizeof(float) / floats,
            least = (NEAR_PIXELS_MIN + shape->ow - 1) / shape->ow;
    return fitting > least ? fitting : least;
}

/* All lines of a band, some at a time; `sums` of taps, then of the bias. */
static void sum_band(const struct weight_gradient *job, const struct gradient_band *band, float *sums)
{
    const struct conv2d_shape *shape = &job->op->shape;
    int64_t pitch = job->view.width * shape->c, step = near_lines(job);
    struct gradient_band part = *band;
    for (int64_t row = 0; row < band->rows; row += step) {
        part.rows = band->rows - row < step ? band->rows - row : step;
        part.x = band->x + row * shape->stride * pitch;
        part.dy = band->dy + row * shape->ow * job->columns;
        if (shape->kernel * shape->c < LINE_TAPS_MIN)
            add_tiles(job, &part, sums);
        else
            add_lines(job, &part, sums);
        if (job->op->dbias)
            add_bias(job, &part, sums + padded_taps(job->taps) * job->columns);
        part.first = false;
    }
}

static void sum_image(const struct weight_gradient *job, int64_t image, bool first_image, float *sums, void *scratch)
{
    const struct conv2d_shape *shape = &job->op->shape;
    float *x_buffer = scratch, *dy_buffer = x_buffer + CONV2D_BAND_BYTES / sizeof(float);
    const float *x = job->op->x + image * shape->h * shape->w * shape->c;
    const float *dy = job->op->dy + image * shape->oh * shape->ow * shape->o;
    int64_t lines = lines_of_a_band(job);
    for (int64_t row = 0; row < shape->oh; row += lines) {
        struct gradient_band band = {.first = first_image && row == 0};
        band.rows = shape->oh - row < lines ? shape->oh - row : lines;
        band.x = padded_image_rows(&job->view, x, row * shape->stride - shape->padding,
                                   (band.rows - 1) * shape->stride + shape->kernel, x_buffer);
        band.dy = whole_vectors(job, dy + row * shape->ow * shape->o, band.rows * shape->ow, dy_buffer);
        sum_band(job, &band, sums);
    }
}

static void sum_group(const void *context, int64_t group, void *scratch)
{
    const struct weight_gradient *job = context;
    int64_t b = job->op->shape.b, first = b * group / job->groups, end = b * (group + 1) / job->groups;
    for (int64_t image = first; image < end; image++)
        sum_image(job, image, image == first, job->op->workspace + group * group_floats(job), scratch);
}

/* Adds the groups of one row of sums, in order. */
CPU_VECTORISED static void add_groups(const struct weight_gradient *job, int64_t row, float *restrict total)
{
    const float *sums = job->op->workspace + row * job->columns;
    memset(total, 0, (size_t)job->columns * sizeof *total);
    for (int64_t g = 0; g < job->groups; g++) {
        const float *restrict part = sums + g * group_floats(job);
        for (int64_t j = 0; j < job->columns; j++)
            total[j] += part[j];
    }
}

static void store(float *to, float value, bool accumulate)
{
    *to = accumulate ? *to + value : value;
}

/* Piece `tap` < taps: dweight[o][c][kh][kw] of that (kh, kw, c); the last piece is the bias. */
static void finish_row(const void *context, int64_t piece, void *scratch)
{
    const struct weight_gradient *job = context;
    const struct conv2d_backward_weight *op = job->op;
    float *total = scratch;
    bool bias = piece == job->taps;
    if (bias && !op->dbias)
        return;
    add_groups(job, bias ? padded_taps(job->taps) : piece, total);
    int64_t c = op->shape.c, window = op->shape.kernel * op->shape.kernel;
    for (int64_t o = 0; o < op->shape.o; o++) {
        float *to = bias ? op->dbias + o : op->dweight + (o * c + piece % c) * window + piece / c;
        store(to, total[o], op->accumulate);
    }
}

void cpu_conv2d_backward_weight(const struct cpu_call *call, const struct conv2d_backward_weight *op)
{
    const struct conv2d_shape *shape = &op->shape;
    struct weight_gradient job = {
        .gemm = call->kernel,
        .op = op,
        .view = {shape->h, shape->w, shape->c, shape->padding, shape->w + 2 * shape->padding},
        .groups = shape->b < GROUPS_MAX ? shape->b : GROUPS_MAX,
        .taps = shape->kernel * shape->kernel * shape->c,
        .columns = (shape->o + call->kernel->vector - 1) / call->kernel->vector * call->kernel->vector,
    };
    team_run(call->team, job.groups, sum_group, &job);
    team_run(call->team, job.taps + 1, finish_row, &job);
}
