/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/conv2d.h"

#include <string.h>

bool padded_image_is_plain(const struct padded_image *view)
{
    return view->padding == 0 && view->dilation == 1 && view->width == view->w;
}

/* The pixel behind position `at` of a padded and dilated axis of `length`, or -1 for a zero. */
static int64_t pixel_behind(int64_t at, int64_t padding, int64_t dilation, int64_t length)
{
    int64_t from = at - padding;
    if (from < 0 || from % dilation != 0 || from / dilation >= length)
        return -1;
    return from / dilation;
}

const float *padded_image_band(const struct padded_image *view, const float *image, int64_t first, int64_t rows,
                               float *buffer)
{
    if (padded_image_is_plain(view))
        return image + first * view->w * view->c;
    int64_t pitch = view->width * view->c;
    memset(buffer, 0, (size_t)(rows * pitch) * sizeof *buffer);
    for (int64_t r = 0; r < rows; r++) {
        int64_t y = pixel_behind(first + r, view->padding, view->dilation, view->h);
        if (y < 0)
            continue;
        const float *line = image + y * view->w * view->c;
        for (int64_t q = 0; q < view->width; q++) {
            int64_t x = pixel_behind(q, view->padding, view->dilation, view->w);
            if (x >= 0)
                memcpy(buffer + r * pitch + q * view->c, line + x * view->c, (size_t)view->c * sizeof *buffer);
        }
    }
    return buffer;
}

int64_t conv2d_band_rows(const struct padded_image *view, int64_t kernel, int64_t stride, int64_t out_rows)
{
    if (padded_image_is_plain(view))
        return out_rows;
    int64_t fitting = CONV2D_BAND_BYTES / (int64_t)sizeof(float) / (view->width * view->c);
    int64_t rows = (fitting - kernel) / stride + 1;
    return rows < 1 ? 1 : rows < out_rows ? rows : out_rows;
}

/* Six pixels at a time, one panel of output channels after the other. */
struct band {
    const struct correlation *job;
    const float *rows;
    int64_t first_pixel, pixels; /* of the image's output, row by row */
    int64_t image;
};

CPU_VECTORISED static void finish_tile(const struct correlation *job, const float *tile, int64_t tile_row,
                                       int64_t pixel, int64_t rows, int64_t column, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *restrict from = tile + r * tile_row;
        int64_t at = (pixel + r) * job->o + column;
        float *restrict to = job->out + at;
        for (int64_t j = 0; j < columns; j++)
            to[j] = job->bias ? from[j] + job->bias[column + j] : from[j];
        if (job->relu)
            for (int64_t j = 0; j < columns; j++)
                to[j] = to[j] > 0 ? to[j] : 0;
        if (job->mask)
            for (int64_t j = 0; j < columns; j++)
                to[j] = job->mask[at + j] > 0 ? to[j] : 0;
    }
}

static void correlate_six(const struct band *band, int64_t pixel, struct gemm_tile *tile)
{
    const struct correlation *job = band->job;
    int64_t pitch = job->view.width * job->view.c, panel_width = job->gemm->columns;
    int64_t rows = band->pixels - pixel < GEMM_ROWS ? band->pixels - pixel : GEMM_ROWS;
    for (int64_t r = 0; r < GEMM_ROWS; r++) {
        int64_t at = pixel + (r < rows ? r : rows - 1);
        tile->a[r] = band->rows + at / job->ow * job->stride * pitch + at % job->ow * job->stride * job->view.c;
    }
    for (int64_t column = 0; column < job->o; column += panel_width) {
        int64_t columns = job->o - column < panel_width ? job->o - column : panel_width;
        tile->b = job->packed + column * job->kernel * job->kernel * job->view.c;
        job->gemm->tile[(columns - 1) / job->gemm->vector](tile);
        finish_tile(job, tile->c, tile->c_row, band->image * job->oh * job->ow + band->first_pixel + pixel, rows,
                    column, columns);
    }
}

static void correlate_band(const struct band *band, float *tile_memory)
{
    const struct correlation *job = band->job;
    int64_t inner = job->kernel * job->view.c;
    struct gemm_tile tile = {
        .a_inner = 1,
        .a_outer = job->view.width * job->view.c,
        .b_inner = job->gemm->columns,
        .b_outer = inner * job->gemm->columns,
        .inner = inner,
        .outer = job->kernel,
        .c = tile_memory,
        .c_row = job->gemm->columns,
    };
    for (int64_t pixel = 0; pixel < band->pixels; pixel += GEMM_ROWS)
        correlate_six(band, pixel, &tile);
}

static void correlate_image(const void *context, int64_t image, void *scratch)
{
    const struct correlation *job = context;
    float *tile = scratch, *buffer = tile + GEMM_ROWS * GEMM_COLUMNS_MAX;
    const float *source = job->images + image * job->view.h * job->view.w * job->view.c;
    int64_t band_rows = conv2d_band_rows(&job->view, job->kernel, job->stride, job->oh);
    for (int64_t first = 0; first < job->oh; first += band_rows) {
        int64_t rows = job->oh - first < band_rows ? job->oh - first : band_rows;
        struct band band = {
            .job = job,
            .rows = padded_image_band(&job->view, source, first * job->stride, (rows - 1) * job->stride + job->kernel,
                                      buffer),
            .first_pixel = first * job->ow,
            .pixels = rows * job->ow,
            .image = image,
        };
        correlate_band(&band, tile);
    }
}

void correlation_run(const struct cpu_call *call, const struct correlation *correlation)
{
    team_run(call->team, correlation->b, correlate_image, correlation);
}
