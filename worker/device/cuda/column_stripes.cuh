/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts a matrix of stored values into stripes of columns and groups of rows. A block handles one
 * group of one stripe: each of its lanes has 16 bytes of a row, and its lines take the rows in
 * turn. The groups depend on the shape alone.
 */
#ifndef COXSWAIN_DEVICE_CUDA_COLUMN_STRIPES_CUH
#define COXSWAIN_DEVICE_CUDA_COLUMN_STRIPES_CUH

#include "worker/device/cuda/stored.cuh"

#define STRIPE_THREADS 256
#define STRIPE_LANES_MAX 32

struct column_stripes {
    int64_t rows, columns;
    int lanes, lines;
    unsigned stripes, groups;
    int64_t group_rows; /* rows of each group but the last: a whole number of turns for all lines */
};

/* Plans the stripes. `at_once`: rows that a line reads at a time; `blocks`: limits the blocks if
 * there is more than one group. */
template <typename Stored>
static inline struct column_stripes stripe_columns(int64_t rows, int64_t columns, int64_t at_once, int64_t blocks)
{
    const int64_t length = element_pack<Stored>::LENGTH, packs = (columns + length - 1) / length;
    struct column_stripes job = {};
    job.rows = rows;
    job.columns = columns;
    job.lanes = 1;
    while (job.lanes < STRIPE_LANES_MAX && job.lanes < packs)
        job.lanes *= 2;
    job.lines = STRIPE_THREADS / job.lanes;
    job.stripes = (unsigned)((packs + job.lanes - 1) / job.lanes);
    int64_t groups = blocks / job.stripes, fewest = at_once * job.lines;
    groups = groups < rows / fewest ? groups : rows / fewest;
    groups = groups > 1 ? groups : 1;
    job.group_rows = ((rows + groups - 1) / groups + fewest - 1) / fewest * fewest;
    job.groups = rows > 0 ? (unsigned)((rows + job.group_rows - 1) / job.group_rows) : 0;
    return job;
}

/* The part of a block that a thread handles. */
struct stripe_place {
    int line;
    int64_t column, left; /* its first column, and the columns from there on */
    int64_t row, end;     /* its first row; it takes every `lines`-th row before `end` */
};

template <typename Stored> static __device__ inline struct stripe_place stripe_place_of(const struct column_stripes &job)
{
    const int lane = (int)threadIdx.x % job.lanes, line = (int)threadIdx.x / job.lanes;
    const int64_t column = ((int64_t)blockIdx.x * job.lanes + lane) * element_pack<Stored>::LENGTH;
    const int64_t first = blockIdx.y * job.group_rows, end = first + job.group_rows;
    return {line, column, job.columns - column, first + line, end < job.rows ? end : job.rows};
}

#endif
