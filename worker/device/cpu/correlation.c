/* SPDX-License-Identifier: Apache-2.0
 *
 * A panel of weights, two vectors of output channels wide, stays in the cache while all lines of an image pass: pieces of a line are in
 * registers, and whole lines of zeros around the image are skipped. Taps that read the same pixels of a spread image are adjacent, so
 * that its own zeros are never read.
 */
#include <string.h>

#include "worker/device/cpu/conv2d.h"

/* Remainder that is never negative. */
static int64_t remainder_of(int64_t a, int64_t b)
{
    int64_t rest = a % b;
    return rest < 0 ? rest + b : rest;
}

/* How many of 0, 1, ... below `end` leave that remainder. */
static int64_t count_of(int64_t end, int64_t rest, int64_t spread)
{
    return rest < end ? (end - rest + spread - 1) / spread : 0;
}

/* ---------------------------------------------------------------- weights */

/* packed[panel][kh][taps in the order of their phase][channel][column] */
struct packing {
    const struct correlation *job;
    int64_t width;
};

/* Where the taps of a phase begin. */
static int64_t phase_start(const struct correlation *job, int64_t rest)
{
    int64_t start = 0;
    for (int64_t before = 0; before < rest; before++)
        start += count_of(job->kernel, before, job->spread);
    return start;
}

static void pack_tap(const void *context, int64_t piece, void *scratch)
{
    const struct packing *packing = context;
    const struct correlation *job = packing->job;
    (void)scratch;
    int64_t window = job->kernel * job->kernel, width = packing->width, column = piece / window * width;
    int64_t tap = piece % window, kw = tap % job->kernel;
    int64_t place = tap - kw + phase_start(job, kw % job->spread) + kw / job->spread;
    int64_t columns = job->o - column < width ? job->o - column : width;
    const float *from = job->weight + column * job->column_stride + (job->turned ? window - 1 - tap : tap);
    float *to = job->workspace + (column * window + place * width) * job->view.c;
    for (int64_t i = 0; i < job->view.c; i++, from += job->channel_stride, to += width) {
        for (int64_t j = 0; j < columns; j++)
            to[j] = from[j * job->column_stride];
        for (int64_t j = columns; j < width; j++)
            to[j] = 0;
    }
}

int64_t correlation_workspace(int64_t kernel, int64_t c, int64_t o)
{
    return kernel * kernel * c * ((o + GEMM_COLUMNS_MAX - 1) / GEMM_COLUMNS_MAX * GEMM_COLUMNS_MAX);
}

/* ---------------------------------------------------------------- lines */

/* Rows [first, first + count) of the view, that taps kh, kh + spread, ... meet for an output line. */
struct rows {
    int64_t first, count, kh;
};

static struct rows rows_behind(const struct correlation *job, int64_t y)
{
    int64_t base = y * job->step - job->padding;
    struct rows rows = {.kh = base < 0 ? -base : remainder_of(-base, job->spread)};
    rows.first = (base + rows.kh) / job->spread;
    int64_t taps = rows.kh < job->kernel ? (job->kernel - rows.kh + job->spread - 1) / job->spread : 0;
    int64_t inside = rows.first < job->view.h ? job->view.h - rows.first : 0;
    rows.count = taps < inside ? taps : inside;
    return rows;
}

/* Rows [first, end) of one image's view. */
struct band {
    const struct correlation *job;
    const struct gemm_kernel *gemm;
    const float *rows;
    int64_t image, first;
    float *tile;
};

/* A panel of output channels. */
struct panel {
    const float *weights;
    int64_t column, columns, width;
    int vectors;
};

static struct panel panel_of(const struct band *band, int64_t column)
{
    const struct correlation *job = band->job;
    int64_t width = GEMM_LINE_VECTORS_MAX * band->gemm->vector;
    int64_t columns = job->o - column < width ? job->o - column : width;
    return (struct panel){
        .weights = job->workspace + column * job->kernel * job->kernel * job->view.c,
        .column = column,
        .columns = columns,
        .width = width,
        .vectors = (int)((columns + band->gemm->vector - 1) / band->gemm->vector),
    };
}

CPU_VECTORISED static void finish_tile(const struct correlation *job, const struct gemm_line *line, int64_t at,
                                       int64_t rows, const struct panel *panel)
{
    for (int64_t r = 0; r < rows; r++, at += job->spread * job->o) {
        const float *restrict from = line->c + r * line->c_row;
        float *restrict to = job->out + at;
        for (int64_t j = 0; j < panel->columns; j++)
            to[j] = job->bias ? from[j] + job->bias[panel->column + j] : from[j];
        if (job->relu)
            for (int64_t j = 0; j < panel->columns; j++)
                to[j] = to[j] <= 0 ? 0 : to[j];
        if (job->mask)
            for (int64_t j = 0; j < panel->columns; j++)
                to[j] = job->mask[at + j] > 0 ? to[j] : 0;
    }
}

/* `count` pixels, the first at `at` in the output. Where channels do not fill their last vector, through a tile. */
static void correlate_piece(const struct band *band, const struct panel *panel, struct gemm_line *line, int64_t at,
                            int64_t count)
{
    const struct correlation *job = band->job;
    bool whole = panel->columns % band->gemm->vector == 0;
    line->c = whole ? job->out + at : band->tile;
    line->c_row = whole ? job->spread * job->o : panel->width;
    line->relu = whole && job->relu;
    line->bias = whole && job->bias ? job->bias + panel->column : NULL;
    line->mask = whole && job->mask ? job->mask + at : NULL;
    band->gemm->line[panel->vectors - 1][count - 1](line);
    if (!whole)
        finish_tile(job, line, at, count, panel);
}

/* Pixels `phase`, phase + spread, ... of an output line: they meet the same taps. */
static void correlate_phase(const struct band *band, const struct panel *panel, int64_t y, int64_t phase)
{
    const struct correlation *job = band->job;
    struct rows rows = rows_behind(job, y);
    int64_t c = job->view.c, pitch = job->view.width * c;
    int64_t kw = remainder_of(job->padding - phase, job->spread);
    int64_t pixel = (phase + kw - job->padding) / job->spread + job->view.left;
    int64_t start = rows.kh * job->kernel + phase_start(job, kw);
    struct gemm_line line = {
        .a = band->rows + (rows.first - band->first) * pitch + pixel * c,
        .a_row = job->step * c,
        .a_inner = 1,
        .a_outer = pitch,
        .b = panel->weights + start * c * panel->width,
        .b_inner = panel->width,
        .b_outer = job->spread * job->kernel * c * panel->width,
        .inner = count_of(job->kernel, kw, job->spread) * c,
        .outer = rows.count,
    };
    int64_t at = ((band->image * job->oh + y) * job->ow + phase) * job->o + panel->column;
    int64_t most = band->gemm->line_rows[panel->vectors - 1], left = count_of(job->ow, phase, job->spread);
    while (left > 0) {
        int64_t count = conv2d_piece(left, most);
        correlate_piece(band, panel, &line, at, count);
        line.a += count * line.a_row;
        at += count * job->spread * job->o;
        left -= count;
    }
}

/* ---------------------------------------------------------------- images */

/* Returns how many output lines have rows that fit a buffer. */
static int64_t lines_of_a_band(const struct correlation *job)
{
    if (padded_image_is_plain(&job->view))
        return job->oh;
    int64_t lines = ((padded_image_fitting(&job->view) - 1) * job->spread - job->kernel + 1) / job->step + 1;
    return lines < 1 ? 1 : lines < job->oh ? lines : job->oh;
}

struct run {
    const struct correlation *job;
    const struct gemm_kernel *gemm;
};

static void correlate_image(const void *context, int64_t image, void *scratch)
{
    const struct run *run = context;
    const struct correlation *job = run->job;
    float *tile = scratch, *buffer = tile + GEMM_LINE_ROWS_MAX * GEMM_COLUMNS_MAX;
    const float *source = job->images + image * job->view.h * job->view.w * job->view.c;
    int64_t lines = lines_of_a_band(job);
    for (int64_t first = 0; first < job->oh; first += lines) {
        int64_t end = job->oh - first < lines ? job->oh : first + lines;
        struct rows top = rows_behind(job, first), bottom = rows_behind(job, end - 1);
        int64_t rows = bottom.first + bottom.count - top.first;
        struct band band = {job,   run->gemm, padded_image_rows(&job->view, source, top.first, rows, buffer),
                            image, top.first, tile};
        for (int64_t column = 0; column < job->o; column += GEMM_LINE_VECTORS_MAX * run->gemm->vector) {
            struct panel panel = panel_of(&band, column);
            for (int64_t y = first; y < end; y++)
                for (int64_t phase = 0; phase < job->spread && phase < job->ow; phase++)
                    correlate_phase(&band, &panel, y, phase);
        }
    }
}

void correlation_run(const struct cpu_call *call, const struct correlation *correlation)
{
    struct packing packing = {correlation, GEMM_LINE_VECTORS_MAX * call->kernel->vector};
    struct run run = {correlation, call->kernel};
    int64_t panels = (correlation->o + packing.width - 1) / packing.width;
    team_run(call->team, panels * correlation->kernel * correlation->kernel, pack_tap, &packing);
    team_run(call->team, correlation->b, correlate_image, &run);
}
