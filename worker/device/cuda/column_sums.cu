/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/column_sums.cuh"
#include "worker/device/cuda/stored.cuh"

template <typename Stored> struct matrix_element {
    values<Stored> x;
    int64_t row_distance;
    __device__ float operator()(int64_t row, int64_t column) const
    {
        return x[row * row_distance + column];
    }
};

void cuda_column_sums(const struct cuda_call *call, const float *x, int64_t rows, int64_t columns, int64_t row,
                      float *sums, bool accumulate)
{
    if (call->stored == STORED_BFLOAT16)
        launch_column_sums(call, rows, columns, sums, accumulate,
                           matrix_element<struct bfloat16>{values<struct bfloat16>(x), row});
    else if (call->stored == STORED_FLOAT16)
        launch_column_sums(call, rows, columns, sums, accumulate,
                           matrix_element<struct float16>{values<struct float16>(x), row});
    else
        launch_column_sums(call, rows, columns, sums, accumulate, matrix_element<float>{values<float>(x), row});
}
