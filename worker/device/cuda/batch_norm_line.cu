/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/batch_norm.cuh"

/* The numbers of a thread's columns, zeros behind the last. */
template <bool ALIGNED, int LENGTH>
static __device__ inline void read_slopes(const struct batch_norm_line &job, int64_t column, int64_t left,
                                          float slope[LENGTH])
{
    float spread[LENGTH], weight[LENGTH];
    read_numbers<ALIGNED, LENGTH>((job.rstd ? job.rstd : job.variance) + column, left, spread);
    read_numbers<ALIGNED, LENGTH>(job.weight + column, left, weight);
#pragma unroll
    for (int i = 0; i < LENGTH; i++)
        slope[i] = weight[i] * (job.rstd ? spread[i] : 1.0f / sqrtf(spread[i] + BATCH_NORM_EPSILON));
}

/* COUNT rows from `row` on. */
template <int COUNT, bool ALIGNED, bool PAST, typename Stored, int LENGTH>
static __device__ inline void normalise_rows(const struct batch_norm_line &job, const struct stripe_place &at, int64_t row,
                                             const float mean[LENGTH], const float slope[LENGTH],
                                             const float bias[LENGTH])
{
    element_pack<Stored> x[COUNT], past[COUNT];
    const int64_t step = job.stripes.lines * job.c, place = row * job.c + at.column;
#pragma unroll
    for (int r = 0; r < COUNT; r++) {
        x[r] = read_pack<ALIGNED>(values<Stored>(job.x).start + place + r * step, at.left);
        if (PAST)
            past[r] = read_pack<ALIGNED>(values<Stored>(job.past).start + place + r * step, at.left);
    }
#pragma unroll
    for (int r = 0; r < COUNT; r++) {
#pragma unroll
        for (int i = 0; i < LENGTH; i++) {
            float y = batch_norm_of(widen(x[r].at[i]), mean[i], slope[i], bias[i]);
            if (PAST) { /* as it would have been stored: the bits of two launches, which stages of a Pipeline make of it */
                narrow(y, &x[r].at[i]);
                y = widen(x[r].at[i]) + widen(past[r].at[i]);
            }
            narrow(job.relu && y <= 0 ? 0 : y, &x[r].at[i]);
        }
        write_pack<ALIGNED>(values<Stored>(job.y).start + place + r * step, x[r], at.left);
    }
}

template <typename Stored, bool ALIGNED, bool PAST>
static __global__ void __launch_bounds__(STRIPE_THREADS) each_group(struct batch_norm_line job)
{
    const int length = element_pack<Stored>::LENGTH;
    const struct stripe_place at = stripe_place_of<Stored>(job.stripes);
    const int64_t lines = job.stripes.lines;
    if (at.left <= 0)
        return;
    float mean[length], slope[length], bias[length];
    read_numbers<ALIGNED, length>(job.mean + at.column, at.left, mean);
    read_numbers<ALIGNED, length>(job.bias + at.column, at.left, bias);
    read_slopes<ALIGNED, length>(job, at.column, at.left, slope);
    int64_t row = at.row;
    for (; row + (BATCH_NORM_AT_ONCE - 1) * lines < at.end; row += BATCH_NORM_AT_ONCE * lines)
        normalise_rows<BATCH_NORM_AT_ONCE, ALIGNED, PAST, Stored, length>(job, at, row, mean, slope, bias);
    for (; row < at.end; row += lines)
        normalise_rows<1, ALIGNED, PAST, Stored, length>(job, at, row, mean, slope, bias);
}

template <typename Stored, bool ALIGNED> static void (*kernel_for(bool past))(struct batch_norm_line)
{
    return past ? each_group<Stored, ALIGNED, true> : each_group<Stored, ALIGNED, false>;
}

template <typename Stored> static void launch(const struct cuda_call *call, struct batch_norm_line job)
{
    const bool aligned = are_aligned(job.x, job.past, job.y, job.weight, job.bias, job.mean, job.rstd, job.variance) &&
                         job.c % element_pack<Stored>::LENGTH == 0;
    job.stripes = stripe_columns<Stored>(job.rows, job.c, BATCH_NORM_AT_ONCE, BATCH_NORM_BLOCKS);
    launch_kernel(call, dim3(job.stripes.stripes, job.stripes.groups), STRIPE_THREADS, 0,
                  aligned ? kernel_for<Stored, true>(job.past != NULL) : kernel_for<Stored, false>(job.past != NULL),
                  job);
}

void batch_norm_line(const struct cuda_call *call, const struct batch_norm_line *line)
{
    if (line->rows > 0 && line->c > 0)
        BY_STORED(call, launch, call, *line);
}
