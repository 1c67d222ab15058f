/* SPDX-License-Identifier: Apache-2.0
 *
 * Finishes the rows of a product, stored values y[rows,columns]: adds a bias, applies a rectifier
 * or a mask, and computes the GELU of the result. Handles 16 bytes at a time where the rows allow
 * it.
 */
#ifndef COXSWAIN_DEVICE_CUDA_FINISH_CUH
#define COXSWAIN_DEVICE_CUDA_FINISH_CUH

#include "worker/device/cuda/stored.cuh"

struct product_finish {
    int64_t rows, columns;
    const float *bias; /* stored values [columns], or NULL */
    bool relu;
    const float *mask; /* stored values [rows,columns]: y becomes zero where they are not positive; or NULL */
    float *y;
    int64_t row; /* distance between rows of y (only without mask and gelu); 0: packed */
    float *gelu; /* stored values [rows,columns]: receives the GELU of y as it is stored; or NULL */
};
void finish_product(const struct cuda_call *call, const struct product_finish *job);

#endif
