/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/each.cuh"

static __global__ void finish_element(struct dense_forward op)
{
    EACH(i, op.m * op.n);
    /* A division of 64 bits costs more than all the rest. */
    const int64_t column = i <= UINT32_MAX ? (uint32_t)i % (uint32_t)op.n : i % op.n;
    const float y = op.bias ? op.y[i] + op.bias[column] : op.y[i];
    op.y[i] = op.activation == ACTIVATION_RELU && y <= 0 ? 0 : y;
}

void cuda_dense_forward(const struct cuda_call *call, const struct dense_forward *op)
{
    struct cuda_product product = {op->m, op->n, op->k, op->x, op->weight, op->y, false, true, false};
    cuda_multiply(call, &product);
    if (op->bias || op->activation == ACTIVATION_RELU)
        launch_each(call, op->m * op->n, finish_element, *op);
}
