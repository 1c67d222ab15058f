/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/finish.cuh"

void cuda_dense_backward_data(const struct cuda_call *call, const struct dense_backward_data *op)
{
    struct cuda_product product = {op->m, op->k, op->n,        op->dy,       op->weight, op->dx, false,
                                   false, false, call->stored, call->stored, 0,          0};
    struct product_finish finish = {op->m, op->k, NULL, false, op->relu_output, op->dx};
    cuda_multiply(call, &product);
    finish_product(call, &finish);
}
