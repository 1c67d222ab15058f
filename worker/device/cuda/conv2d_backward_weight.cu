/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/convolution.h"
#include "worker/device/cuda/correlation.cuh"
#include "worker/device/cuda/each.cuh"
#include "worker/device/cuda/patches.cuh"

/* Pixels are cut into groups so that about this many blocks run. Each block sums by itself; then the groups are added in order. */
#define BLOCKS_WANTED 528
#define GROUP_PIXELS 256 /* a group has at least */

struct weight_gradient {
    struct conv2d_backward_weight op;
    struct image_view view;
    int taps, o;
    int64_t groups;
    float *partial; /* [groups, taps, o] */
};

/* Rows are taps, the inner axis pixels, columns outputs. */
template <int ROWS, int COLUMNS> struct fetch_pixels {
    const struct weight_gradient &job;
    struct tile_thread at;
    struct tap tap;
    struct window window; /* of the next step's first pixel of this thread */
    bool is_tap;
    int first_column;
    int64_t end;

    __device__ void operator()(int64_t step, struct tile_fetch<ROWS, COLUMNS> *fetch)
    {
        const int64_t pixel = step + at.a_depth, row = step + at.b_depth;
#pragma unroll
        for (int j = 0; j < ROWS; j++) {
            fetch->a[j] = is_tap && pixel + j < end ? gather(job.view, window, tap) : 0;
            window_advance(job.view, &window, 1);
        }
        window_advance(job.view, &window, TILE_DEPTH - ROWS);
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            const int column = first_column + at.b_column + j;
            fetch->b[j] = row < end && column < job.o ? job.op.dy[row * job.o + column] : 0;
        }
    }
};

template <int ROWS, int COLUMNS>
static __global__ void __launch_bounds__(TILE_THREADS) sum_group(struct weight_gradient job)
{
    __shared__ __align__(16) struct tile_memory<ROWS, COLUMNS> tile;
    const struct tile_thread at = tile_thread<ROWS, COLUMNS>();
    const int first_tap = (int)blockIdx.x * ROWS * TILE_SIDE, first_column = (int)blockIdx.y * COLUMNS * TILE_SIDE;
    const int64_t first = job.view.pixels * blockIdx.z / job.groups;
    const int64_t end = job.view.pixels * (blockIdx.z + 1) / job.groups;
    const int own = first_tap + at.a_row;
    struct fetch_pixels<ROWS, COLUMNS> fetch = {
        job, at, tap_at(job.view, own), window_at(job.view, first + at.a_depth), own < job.taps, first_column, end
    };
    float sums[ROWS][COLUMNS] = {};
    tile_run(&tile, at, first, end, &fetch, sums);
    float *partial = job.partial + (int64_t)blockIdx.z * job.taps * job.o;
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            const int tap = first_tap + at.row + i, column = first_column + at.column + j;
            if (tap < job.taps && column < job.o)
                partial[(int64_t)tap * job.o + column] = sums[i][j];
        }
}

/* Element i of dweight[o][c][kh][kw]. */
static __global__ void add_groups(struct weight_gradient job)
{
    const struct conv2d_shape &s = job.op.shape;
    const int64_t elements = (int64_t)job.taps * job.o, window = s.kernel * s.kernel;
    EACH(i, elements);
    const float *partial = job.partial + (i % window * s.c + i / window % s.c) * s.o + i / window / s.c;
    float sum = 0;
#pragma unroll 8
    for (int64_t group = 0; group < job.groups; group++)
        sum += partial[group * elements];
    job.op.dweight[i] = job.op.accumulate ? job.op.dweight[i] + sum : sum;
}

static int64_t groups_for(int64_t pixels, int64_t tiles, int64_t elements)
{
    int64_t groups = BLOCKS_WANTED / tiles, most = pixels / GROUP_PIXELS, fitting = CUDA_SCRATCH_FLOATS / elements;
    groups = groups < most ? groups : most;
    groups = groups < fitting ? groups : fitting;
    return groups > 1 ? groups : 1;
}

template <int ROWS, int COLUMNS> static void launch(const struct cuda_call *call, struct weight_gradient *job)
{
    const int rows = ROWS * TILE_SIDE, columns = COLUMNS * TILE_SIDE;
    dim3 blocks((unsigned)((job->taps + rows - 1) / rows), (unsigned)((job->o + columns - 1) / columns));
    job->groups = groups_for(job->view.pixels, (int64_t)blocks.x * blocks.y, (int64_t)job->taps * job->o);
    job->partial = job->groups > 1 ? call->scratch : job->op.workspace;
    blocks.z = (unsigned)job->groups;
    launch_kernel(call, blocks, TILE_THREADS, 0, sum_group<ROWS, COLUMNS>, *job);
}

static void by_products(const struct cuda_call *call, const struct weight_gradient *job)
{
    const struct conv2d_backward_weight *op = &job->op;
    const struct conv2d_shape *s = &op->shape;
    const struct patch_view view = {
        (const uint16_t *)op->x, s->b, s->h, s->w, s->c, s->kernel, s->stride, s->padding, 1, s->oh, s->ow};
    struct cuda_product product = {s->o,  s->c,           job->view.pixels, op->dy,         op->x, op->dweight, true,
                                   false, op->accumulate, call->stored,  STORED_FLOAT32, 0,     0,  0,         false};
    if (patches_are_pixels(s)) {
        cuda_multiply(call, &product);
        return;
    }
    sum_patches(call, &view, op->dy, s->o, op->workspace);
    launch_each(call, (int64_t)job->taps * job->o, add_groups, *job);
}

static void by_tiles(const struct cuda_call *call, struct weight_gradient *job)
{
    if (job->taps <= 2 * TILE_SIDE)
        launch<2, 2>(call, job);
    else if (job->o <= 2 * TILE_SIDE)
        launch<8, 2>(call, job);
    else
        launch<8, 4>(call, job);
    launch_each(call, (int64_t)job->taps * job->o, add_groups, *job);
}

void cuda_conv2d_backward_weight(const struct cuda_call *call, const struct conv2d_backward_weight *op)
{
    const struct conv2d_shape *s = &op->shape;
    struct weight_gradient job = {};
    job.groups = 1;
    job.partial = op->workspace;
    job.op = *op;
    job.view = {op->x,           (int)s->h, (int)s->w,  (int)s->c,  (int)s->kernel,      (int)s->stride,
                (int)s->padding, 1,         (int)s->oh, (int)s->ow, s->b * s->oh * s->ow};
    job.taps = (int)(s->kernel * s->kernel * s->c);
    job.o = (int)s->o;
    if (!cuda_convolve_backward_weight(call, op)) {
        if (call->stored != STORED_FLOAT32)
            by_products(call, &job);
        else
            by_tiles(call, &job);
    }
    if (op->dbias)
        cuda_column_sums(call, op->dy, job.view.pixels, s->o, s->o, op->dbias, op->accumulate);
}
