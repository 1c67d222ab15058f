/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/column_sums.cuh"

struct matrix_element {
    const float *x;
    int64_t columns;
    __device__ float operator()(int64_t row, int64_t column) const
    {
        return x[row * columns + column];
    }
};

void cuda_column_sums(const struct cuda_call *call, const float *x, int64_t rows, int64_t columns, float *sums,
                      bool accumulate)
{
    struct matrix_element element = {x, columns};
    launch_column_sums(call, rows, columns, sums, accumulate, element);
}
