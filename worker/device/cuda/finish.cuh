/* SPDX-License-Identifier: Apache-2.0
 *
 * What is left to do to a product's rows: a bias, a rectifier, a mask, and a GELU
 * of what they then are. Of values y[rows,columns], 16 bytes at a time where rows
 * allow it.
 */
#ifndef COXSWAIN_DEVICE_CUDA_FINISH_CUH
#define COXSWAIN_DEVICE_CUDA_FINISH_CUH

#include "worker/device/cuda/stored.cuh"

struct product_finish {
    int64_t rows, columns;
    const float *bias; /* values [columns], or NULL */
    bool relu;
    const float *mask; /* values [rows,columns]: y becomes zero where they are not positive; or NULL */
    float *y;
    int64_t row; /* how far apart those of y lie, without a mask or a GELU; 0: packed */
    float *gelu; /* values [rows,columns]: the GELU of y as it is stored; or NULL */
};
void finish_product(const struct cuda_call *call, const struct product_finish *job);

#endif
