/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/finish.cuh"

/* A thread has one number, or 16 bytes of a row. */
template <typename Stored, int LENGTH> static __global__ void each_piece(struct product_finish job)
{
    struct alignas(sizeof(Stored) * LENGTH) piece {
        Stored at[LENGTH];
    };
    EACH(number, job.rows * job.columns / LENGTH);
    const int64_t first = number * LENGTH;
    /* A division of 64 bits costs more than all the rest. */
    const int64_t column = first <= UINT32_MAX ? (uint32_t)first % (uint32_t)job.columns : first % job.columns;
    const int64_t at = job.row > 0 ? first / job.columns * job.row + column : first;
    piece *place = (piece *)(values<Stored>(job.y).start + at), some = *place, mask = {};
    if (job.mask)
        mask = *(const piece *)(values<Stored>(job.mask).start + first);
#pragma unroll
    for (int i = 0; i < LENGTH; i++) {
        float y = widen(some.at[i]);
        if (job.bias)
            y += values<Stored>(job.bias)[column + i];
        if (job.relu && y <= 0)
            y = 0;
        if (job.mask && !(widen(mask.at[i]) > 0))
            y = 0;
        narrow(y, &some.at[i]);
    }
    *place = some;
}

template <typename Stored> static void launch(const struct cuda_call *call, const struct product_finish *job)
{
    const int length = 16 / (int)sizeof(Stored);
    const uintptr_t places = (uintptr_t)job->y | (uintptr_t)job->mask;
    if (job->columns % length == 0 && job->row % length == 0 && places % 16 == 0)
        launch_each(call, job->rows * job->columns / length, each_piece<Stored, length>, *job);
    else
        launch_each(call, job->rows * job->columns, each_piece<Stored, 1>, *job);
}

void finish_product(const struct cuda_call *call, const struct product_finish *job)
{
    if (job->bias || job->relu || job->mask)
        BY_STORED(call, launch, call, job);
}
