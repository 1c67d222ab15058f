/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/finish.cuh"
#include "worker/device/cuda/fused_product.h"

/* The rectifiers of cuBLASLt lose a NaN, and its hyperbolic tangent is too coarse for float32. */
static bool is_finished(const struct cuda_call *call, const struct dense_forward *op,
                        const struct cuda_product *product)
{
    struct fused_product job = {*product, op->bias, NULL, FUSED_NO_GELU};
    if (op->activation != ACTIVATION_NONE || !op->bias)
        return false;
    if (op->gelu && call->stored != STORED_FLOAT32) {
        job.gelu = FUSED_GELU;
        job.gelu_input = op->y;
        job.product.c = op->gelu;
        if (cuda_multiply_fused(call, &job))
            return true;
        job = {*product, op->bias, NULL, FUSED_NO_GELU};
    }
    if (!cuda_multiply_fused(call, &job))
        return false;
    const struct gelu_forward gelu = {op->m * op->n, op->y, op->gelu};
    if (op->gelu)
        cuda_gelu_forward(call, &gelu);
    return true;
}

void cuda_dense_forward(const struct cuda_call *call, const struct dense_forward *op)
{
    struct cuda_product product = {op->m, op->n, op->k,        op->x,        op->weight, op->y, false,
                                   true,  false, call->stored, call->stored, 0,          0,   op->y_row,  op->tf32};
    struct product_finish finish = {op->m, op->n,     op->bias, op->activation == ACTIVATION_RELU,
                                    NULL,  op->y, op->y_row, op->gelu};
    if (is_finished(call, op, &product))
        return;
    cuda_multiply(call, &product);
    finish_product(call, &finish);
}
