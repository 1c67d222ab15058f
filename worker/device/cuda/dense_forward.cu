/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/finish.cuh"

void cuda_dense_forward(const struct cuda_call *call, const struct dense_forward *op)
{
    struct cuda_product product = {op->m, op->n, op->k,        op->x,        op->weight, op->y, false,
                                   true,  false, call->stored, call->stored, 0,          0};
    struct product_finish finish = {op->m, op->n, op->bias, op->activation == ACTIVATION_RELU, NULL, op->y};
    cuda_multiply(call, &product);
    finish_product(call, &finish);
}
