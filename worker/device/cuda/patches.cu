/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/patches.cuh"

#define LENGTH 8       /* 16 bytes */
#define WHOLE_ROWS 128 /* a batch of rows is a multiple of, where it can be */

int64_t patch_taps(const struct patch_view *view)
{
    return view->kernel * view->kernel * view->c;
}

int64_t patch_row(const struct patch_view *view)
{
    const int64_t taps = patch_taps(view);
    return taps < LENGTH ? taps : (taps + LENGTH - 1) / LENGTH * LENGTH;
}

bool patches_are_pixels(const struct conv2d_shape *shape)
{
    return shape->kernel == 1 && shape->stride == 1 && shape->padding == 0;
}

/* ---------------------------------------------------------------- patches */

/* Rows [0, rows) of the matrix `to`; the first is output (i, j) of an image, those before it are left out of `view`. */
struct patch_job {
    struct patch_view view;
    uint16_t *to;
    int64_t rows, row;
    int i, j, taps;
};

/* The channels of the pixel that a tap of an output meets, or NULL for zeros. */
static __device__ inline const uint16_t *pixel_behind(const struct patch_job &job, int output, int tap)
{
    const struct patch_view &view = job.view;
    const int width = (int)view.ow, c = (int)view.c, kernel = (int)view.kernel, dilation = (int)view.dilation;
    const int at = job.j + output, line = job.i + at / width, place = tap / c;
    int row = line % (int)view.oh * (int)view.stride - (int)view.padding + place / kernel;
    int column = at % width * (int)view.stride - (int)view.padding + place % kernel;
    if (row < 0 || column < 0 || row % dilation != 0 || column % dilation != 0)
        return NULL;
    row /= dilation;
    column /= dilation;
    if (row >= view.h || column >= view.w)
        return NULL;
    return view.images + ((line / (int)view.oh * view.h + row) * view.w + column) * view.c;
}

template <int COUNT> static __global__ void each_piece(struct patch_job job)
{
    struct alignas(sizeof(uint16_t) * COUNT) piece {
        uint16_t at[COUNT];
    };
    const int pieces = (int)job.row / COUNT;
    EACH(number, job.rows * pieces);
    const int output = (int)number / pieces, tap = (int)number % pieces * COUNT;
    const uint16_t *pixel = tap < job.taps ? pixel_behind(job, output, tap) : NULL;
    piece some = {};
    if (pixel)
        some = *(const piece *)(pixel + tap % (int)job.view.c);
    *(piece *)(job.to + number * COUNT) = some;
}

/* Rows [first, first + rows). */
static void gather(const struct cuda_call *call, const struct patch_view *view, int64_t first, int64_t rows)
{
    struct patch_job job = {};
    const int64_t line = first / view->ow, image = line / view->oh;
    const uintptr_t places = (uintptr_t)view->images;
    job.view = *view;
    job.view.images += image * view->h * view->w * view->c;
    job.to = (uint16_t *)call->patches;
    job.rows = rows;
    job.row = patch_row(view);
    job.i = (int)(line % view->oh);
    job.j = (int)(first % view->ow);
    job.taps = (int)patch_taps(view);
    if (view->c % LENGTH == 0 && places % 16 == 0)
        launch_each(call, rows * (job.row / LENGTH), each_piece<LENGTH>, job);
    else
        launch_each(call, rows * job.row, each_piece<1>, job);
}

/* As many as there is memory for. */
static int64_t rows_at_once(const struct patch_view *view)
{
    const int64_t most = CUDA_PATCHES_BYTES / (patch_row(view) * (int64_t)sizeof(uint16_t));
    return most > WHOLE_ROWS ? most / WHOLE_ROWS * WHOLE_ROWS : most;
}

/* ---------------------------------------------------------------- products */

static __global__ void pack_weight(struct patch_weights job)
{
    const int64_t window = job.kernel * job.kernel, inner = job.turned ? job.o : job.c;
    const int64_t columns = job.turned ? job.c : job.o;
    EACH(i, job.rows * columns);
    const int64_t tap = i / columns, column = i % columns, place = tap / inner, channel = tap % inner;
    const int64_t o = job.turned ? channel : column, c = job.turned ? column : channel;
    const int64_t from = (o * job.c + c) * window + (job.turned ? window - 1 - place : place);
    const uint16_t zero = 0;
    job.packed[i] = place < window ? ((const uint16_t *)job.weight)[from] : zero;
}

void multiply_patches(const struct cuda_call *call, const struct patch_view *view, const struct patch_weights *weights,
                      float *out)
{
    const int64_t pixels = view->b * view->oh * view->ow, outputs = weights->turned ? weights->c : weights->o;
    struct patch_weights job = *weights;
    job.rows = patch_row(view);
    launch_each(call, job.rows * outputs, pack_weight, job);
    for (int64_t first = 0, step = rows_at_once(view); first < pixels; first += step) {
        const int64_t rows = pixels - first < step ? pixels - first : step;
        struct cuda_product product = {
            rows,  outputs, job.rows, call->patches,   job.packed,      (uint16_t *)out + first * outputs,
            false, false,   false,    call->stored, call->stored, 0,
            0, 0,    false};
        gather(call, view, first, rows);
        cuda_multiply(call, &product);
    }
}

void sum_patches(const struct cuda_call *call, const struct patch_view *view, const float *dy, int64_t outputs,
                 float *sums)
{
    const int64_t pixels = view->b * view->oh * view->ow, step = rows_at_once(view);
    for (int64_t first = 0; first < pixels || first == 0; first += step) {
        const int64_t rows = pixels - first < step ? pixels - first : step;
        struct cuda_product product = {patch_taps(view),
                                       outputs,
                                       rows,
                                       call->patches,
                                       (const uint16_t *)dy + first * outputs,
                                       sums,
                                       true,
                                       false,
                                       first > 0,
                                       call->stored,
                                       STORED_FLOAT32,
                                       patch_row(view),
                                       0,
                                       0,
                                       false};
        gather(call, view, first, rows);
        cuda_multiply(call, &product);
    }
}
