/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/each.cuh"

static __global__ void mask_element(struct dense_backward_data op)
{
    EACH(i, op.m * op.k);
    if (!(op.relu_output[i] > 0))
        op.dx[i] = 0;
}

void cuda_dense_backward_data(const struct cuda_call *call, const struct dense_backward_data *op)
{
    struct cuda_product product = {op->m, op->k, op->n, op->dy, op->weight, op->dx, false, false, false};
    cuda_multiply(call, &product);
    if (op->relu_output)
        launch_each(call, op->m * op->k, mask_element, *op);
}
