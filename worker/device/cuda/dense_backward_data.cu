/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/finish.cuh"
#include "worker/device/cuda/fused_product.h"

void cuda_dense_backward_data(const struct cuda_call *call, const struct dense_backward_data *op)
{
    struct cuda_product product = {op->m, op->k, op->n,        op->dy,       op->weight, op->dx, false,
                                   false, false, call->stored, call->stored, op->dy_row, 0, 0,     op->tf32};
    struct product_finish finish = {op->m, op->k, NULL, false, op->relu_output, op->dx, 0, NULL};
    const struct fused_product job = {product, NULL, (void *)op->gelu_input, FUSED_GELU_BACKWARD};
    const struct gelu_backward gelu = {op->m * op->k, op->gelu_input, op->dx, op->dx};
    if (op->gelu_input && call->stored != STORED_FLOAT32 && cuda_multiply_fused(call, &job))
        return;
    cuda_multiply(call, &product);
    finish_product(call, &finish);
    if (op->gelu_input)
        cuda_gelu_backward(call, &gelu);
}
