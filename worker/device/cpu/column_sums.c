/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/column_sums.h"

#define PIECE_COLUMNS 64

struct column_sums {
    const float *x;
    int64_t rows, columns, row;
    float *sums;
    bool accumulate;
};

CPU_VECTORISED static void sum_piece(const void *context, int64_t piece, void *scratch)
{
    const struct column_sums *job = context;
    (void)scratch;
    int64_t first = piece * PIECE_COLUMNS;
    int64_t count = job->columns - first < PIECE_COLUMNS ? job->columns - first : PIECE_COLUMNS;
    float sum[PIECE_COLUMNS] = {0};
    for (int64_t r = 0; r < job->rows; r++) {
        const float *values = job->x + r * job->row + first;
        for (int64_t j = 0; j < count; j++)
            sum[j] += values[j];
    }
    for (int64_t j = 0; j < count; j++)
        job->sums[first + j] = job->accumulate ? job->sums[first + j] + sum[j] : sum[j];
}

void column_sums(const struct cpu_call *call, const float *x, int64_t rows, int64_t columns, int64_t row, float *sums,
                 bool accumulate)
{
    struct column_sums job = {x, rows, columns, row, sums, accumulate};
    team_run(call->team, (columns + PIECE_COLUMNS - 1) / PIECE_COLUMNS, sum_piece, &job);
}
