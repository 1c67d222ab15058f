/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/correlation.cuh"

#define ROWS 8

/* Rows are pixels, the inner axis taps, columns outputs. */
template <int COLUMNS> struct fetch_windows {
    const struct correlation &job;
    struct tile_thread at;
    struct window window;
    bool is_pixel;
    int first_column;

    /* The thread's ROWS taps are channels of one pixel where channels come in eights. */
    __device__ void read_channels(int number, float *a) const
    {
        const struct tap tap = tap_at(job.view, number);
        const float *pixel = number < job.taps && is_pixel ? pixel_behind(job.view, window, tap) : NULL;
#pragma unroll
        for (int j = 0; j < ROWS; j += 4)
            *(float4 *)(a + j) = pixel ? *(const float4 *)(pixel + tap.channel + j) : make_float4(0, 0, 0, 0);
    }

    __device__ void read_taps(int number, float *a) const
    {
        struct tap tap = tap_at(job.view, number);
#pragma unroll
        for (int j = 0; j < ROWS; j++, number++) {
            a[j] = number < job.taps && is_pixel ? gather(job.view, window, tap) : 0;
            tap_advance(job.view, &tap);
        }
    }

    __device__ void operator()(int64_t step, struct tile_fetch<ROWS, COLUMNS> *fetch)
    {
        if (job.view.c % ROWS == 0)
            read_channels((int)step + at.a_depth, fetch->a);
        else
            read_taps((int)step + at.a_depth, fetch->a);
        const int row = (int)step + at.b_depth;
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            const int column = first_column + at.b_column + j;
            fetch->b[j] = row < job.taps && column < job.o ? job.packed[(int64_t)row * job.o + column] : 0;
        }
    }
};

static __device__ void finish(const struct correlation &job, int64_t pixel, int column, float sum)
{
    if (pixel >= job.view.pixels || column >= job.o)
        return;
    const int64_t i = pixel * job.o + column;
    float y = job.bias ? sum + job.bias[column] : sum;
    if (job.relu && y <= 0)
        y = 0;
    if (job.mask && !(job.mask[i] > 0))
        y = 0;
    job.out[i] = y;
}

template <int COLUMNS> static __global__ void __launch_bounds__(TILE_THREADS) correlate_tile(struct correlation job)
{
    __shared__ __align__(16) struct tile_memory<ROWS, COLUMNS> tile;
    const struct tile_thread at = tile_thread<ROWS, COLUMNS>();
    const int64_t first_pixel = (int64_t)blockIdx.x * ROWS * TILE_SIDE, own = first_pixel + at.a_row;
    const int first_column = (int)blockIdx.y * COLUMNS * TILE_SIDE;
    struct fetch_windows<COLUMNS> fetch = {
        job, at, window_at(job.view, own), own < job.view.pixels, first_column
    };
    float sums[ROWS][COLUMNS] = {};
    tile_run(&tile, at, 0, job.taps, &fetch, sums);
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLUMNS; j++)
            finish(job, first_pixel + at.row + i, first_column + at.column + j, sums[i][j]);
}

template <int COLUMNS> static void launch(const struct cuda_call *call, const struct correlation *job)
{
    const int rows = ROWS * TILE_SIDE, columns = COLUMNS * TILE_SIDE;
    dim3 blocks((unsigned)((job->view.pixels + rows - 1) / rows), (unsigned)((job->o + columns - 1) / columns));
    launch_kernel(call, blocks, TILE_THREADS, 0, correlate_tile<COLUMNS>, *job);
}

void correlate(const struct cuda_call *call, const struct correlation *job)
{
    if (job->view.pixels == 0)
        return;
    if (job->o <= 2 * TILE_SIDE)
        launch<2>(call, job);
    else
        launch<4>(call, job);
}
