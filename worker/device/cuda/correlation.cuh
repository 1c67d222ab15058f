/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes convolutions as matrix products whose elements are gathered from images on the way:
 * pixels by taps (kernel row, kernel column, channel) of a padded and dilated view. A block of 16
 * x 16 threads computes a tile, each thread ROWS x COLUMNS of it, 16 steps of the inner axis at a
 * time from shared memory. The tile size is chosen by shape: with few taps or channels, a large
 * tile would be mostly idle.
 */
#ifndef COXSWAIN_DEVICE_CUDA_CORRELATION_CUH
#define COXSWAIN_DEVICE_CUDA_CORRELATION_CUH

#include "worker/device/cuda/launch.cuh"
#include "worker/device/cuda/read_share.cuh"

#define TILE_SIDE 16
#define TILE_DEPTH 16
#define TILE_THREADS (TILE_SIDE * TILE_SIDE)

/* A view of images [b,h,w,c] with dilation - 1 zeros between pixels and `padding` zeros around
 * them; windows of `kernel` at steps of `stride` give outputs [b,oh,ow]. */
struct image_view {
    const float *images;
    int h, w, c, kernel, stride, padding, dilation, oh, ow;
    int64_t pixels; /* outputs: b * oh * ow */
};

/* A position in an iteration over the windows, pixel by pixel. */
struct window {
    const float *image;
    int i, j;
};

struct tap {
    int row, column, channel;
};

static __device__ inline struct window window_at(const struct image_view &view, int64_t pixel)
{
    const int64_t line = pixel / view.ow;
    return {view.images + line / view.oh * view.h * view.w * view.c, (int)(line % view.oh), (int)(pixel % view.ow)};
}

static __device__ inline void window_advance(const struct image_view &view, struct window *window, int pixels)
{
    for (window->j += pixels; window->j >= view.ow; window->j -= view.ow)
        if (++window->i == view.oh) {
            window->i = 0;
            window->image += (int64_t)view.h * view.w * view.c;
        }
}

static __device__ inline struct tap tap_at(const struct image_view &view, int number)
{
    const int line = number / view.c;
    return {line / view.kernel, line % view.kernel, number % view.c};
}

static __device__ inline void tap_advance(const struct image_view &view, struct tap *tap)
{
    if (++tap->channel < view.c)
        return;
    tap->channel = 0;
    if (++tap->column < view.kernel)
        return;
    tap->column = 0;
    tap->row++;
}

/* Returns the channels of the pixel at a tap of a window; NULL: zeros. */
static __device__ inline const float *pixel_behind(const struct image_view &view, const struct window &window,
                                                   const struct tap &tap)
{
    int row = window.i * view.stride - view.padding + tap.row;
    int column = window.j * view.stride - view.padding + tap.column;
    if (row < 0 || column < 0)
        return NULL;
    if (view.dilation > 1) {
        if (row % view.dilation != 0 || column % view.dilation != 0)
            return NULL;
        row /= view.dilation;
        column /= view.dilation;
    }
    if (row >= view.h || column >= view.w)
        return NULL;
    return window.image + ((int64_t)row * view.w + column) * view.c;
}

static __device__ inline float gather(const struct image_view &view, const struct window &window, const struct tap &tap)
{
    const float *pixel = pixel_behind(view, window, tap);
    return pixel ? pixel[tap.channel] : 0;
}

template <int ROWS, int COLUMNS> struct tile_memory {
    float a[TILE_DEPTH][ROWS * TILE_SIDE];
    float b[TILE_DEPTH][COLUMNS * TILE_SIDE];
};

/* The values that a thread fetches for the next step while it computes this one. */
template <int ROWS, int COLUMNS> struct tile_fetch {
    float a[ROWS], b[COLUMNS];
};

/* The elements that a thread loads, and those that it computes. */
struct tile_thread {
    int a_row, a_depth, b_column, b_depth, row, column;
};
template <int ROWS, int COLUMNS> static __device__ inline struct tile_thread tile_thread(void)
{
    const int t = (int)threadIdx.x;
    return {t % (ROWS * TILE_SIDE), t / (ROWS * TILE_SIDE) * ROWS, t % TILE_SIDE * COLUMNS,
            t / TILE_SIDE,          t / TILE_SIDE * ROWS,          t % TILE_SIDE * COLUMNS};
}

template <int ROWS, int COLUMNS>
static __device__ inline void tile_store(struct tile_memory<ROWS, COLUMNS> *tile, const struct tile_thread &at,
                                         const struct tile_fetch<ROWS, COLUMNS> &fetch)
{
#pragma unroll
    for (int j = 0; j < ROWS; j++)
        tile->a[at.a_depth + j][at.a_row] = fetch.a[j];
#pragma unroll
    for (int j = 0; j < COLUMNS; j++)
        tile->b[at.b_depth][at.b_column + j] = fetch.b[j];
}

template <int ROWS, int COLUMNS>
static __device__ inline void tile_multiply(const struct tile_memory<ROWS, COLUMNS> &tile, const struct tile_thread &at,
                                            float sums[ROWS][COLUMNS])
{
#pragma unroll
    for (int k = 0; k < TILE_DEPTH; k++) {
        __align__(16) float a[ROWS], b[COLUMNS];
        read_share<ROWS>(a, &tile.a[k][at.row]);
        read_share<COLUMNS>(b, &tile.b[k][at.column]);
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int j = 0; j < COLUMNS; j++)
                sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
    }
}

/* Runs the inner axis from `first` to `end`; fetch(step, &fetch) reads this thread's values of
 * one step. */
template <int ROWS, int COLUMNS, typename Fetch>
static __device__ inline void tile_run(struct tile_memory<ROWS, COLUMNS> *tile, const struct tile_thread &at,
                                       int64_t first, int64_t end, Fetch *fetch, float sums[ROWS][COLUMNS])
{
    struct tile_fetch<ROWS, COLUMNS> next;
    if (first < end)
        (*fetch)(first, &next);
    for (int64_t step = first; step < end; step += TILE_DEPTH) {
        tile_store(tile, at, next);
        __syncthreads();
        if (step + TILE_DEPTH < end)
            (*fetch)(step + TILE_DEPTH, &next);
        tile_multiply(*tile, at, sums);
        __syncthreads();
    }
}

/* Computes out[pixels,o] = the view's windows times packed[taps,o]; then applies bias, rectifier
 * and mask. */
struct correlation {
    struct image_view view;
    int taps, o;
    const float *packed, *bias, *mask;
    float *out;
    bool relu;
};
void correlate(const struct cuda_call *call, const struct correlation *job);

#endif
