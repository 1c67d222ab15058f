/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/finish.cuh"
#include "worker/device/cuda/gelu.cuh"

template <typename Stored, int LENGTH> struct alignas(sizeof(Stored) * LENGTH) product_piece {
    Stored at[LENGTH];
};

/* Reads a piece of the bias; if it is not aligned like a piece, number by number. */
template <typename Stored, int LENGTH>
static __device__ inline product_piece<Stored, LENGTH> bias_at(const Stored *bias, bool aligned)
{
    product_piece<Stored, LENGTH> some;
    if (aligned)
        return *(const product_piece<Stored, LENGTH> *)bias;
#pragma unroll
    for (int i = 0; i < LENGTH; i++)
        some.at[i] = bias[i];
    return some;
}

/* A thread has one number, or 16 bytes of a row. */
template <typename Stored, int LENGTH> static __global__ void each_piece(struct product_finish job, bool bias_is_aligned)
{
    typedef product_piece<Stored, LENGTH> piece;
    EACH(number, job.rows * job.columns / LENGTH);
    const int64_t first = number * LENGTH;
    /* A division of 64 bits costs more than all the rest. */
    const int64_t column = first <= UINT32_MAX ? (uint32_t)first % (uint32_t)job.columns : first % job.columns;
    const int64_t at = job.row > 0 ? first / job.columns * job.row + column : first;
    piece *place = (piece *)(values<Stored>(job.y).start + at), some = *place, mask = {}, bias = {}, gelu;
    if (job.mask)
        mask = *(const piece *)(values<Stored>(job.mask).start + first);
    if (job.bias)
        bias = bias_at<Stored, LENGTH>(values<Stored>(job.bias).start + column, bias_is_aligned);
#pragma unroll
    for (int i = 0; i < LENGTH; i++) {
        float y = widen(some.at[i]);
        if (job.bias)
            y += widen(bias.at[i]);
        if (job.relu && y <= 0)
            y = 0;
        if (job.mask && !(widen(mask.at[i]) > 0))
            y = 0;
        narrow(y, &some.at[i]);
        if (job.gelu)
            narrow(gelu_of(widen(some.at[i])), &gelu.at[i]);
    }
    *place = some;
    if (job.gelu)
        *(piece *)(values<Stored>(job.gelu).start + first) = gelu;
}

template <typename Stored> static void launch(const struct cuda_call *call, const struct product_finish *job)
{
    const int length = element_pack<Stored>::LENGTH;
    if (job->columns % length == 0 && job->row % length == 0 && are_aligned(job->y, job->mask, job->gelu))
        launch_kernel(call, (unsigned)((job->rows * job->columns / length + EACH_THREADS - 1) / EACH_THREADS),
                      EACH_THREADS, 0, each_piece<Stored, length>, *job, are_aligned(job->bias));
    else
        launch_kernel(call, (unsigned)((job->rows * job->columns + EACH_THREADS - 1) / EACH_THREADS), EACH_THREADS, 0,
                      each_piece<Stored, 1>, *job, true);
}

void finish_product(const struct cuda_call *call, const struct product_finish *job)
{
    if (job->rows * job->columns > 0 && (job->bias || job->relu || job->mask || job->gelu))
        BY_STORED(call, launch, call, job);
}
